#!/usr/bin/env node
// Perfetto's trace_processor (v55, compiled to WebAssembly) without a browser, a native binary or a network.
//
//   trace_processor.mjs ASSETS TRACE SQL...      prints one JSON array of result sets; each is an array of objects, one a row
//
// ASSETS is the folder that tools/setup fetches and verifies. Its glue is written for a web worker: what it expects of one is put
// in place here, and three places in it are changed (each must be found as it was, or we stop). Exit 2 on any error.
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';

const kChunkBytes = 16 << 20;

/** The glue's source with what the package lacks taken out: the 64-bit module, and a way to fetch the module by URL. */
function patchedGlue(assets) {
  let glue = readFileSync(join(assets, 'engine_bundle.node.js'), 'utf8');
  const changes = [
    ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
    ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.ringsideWasm,'],
    ['const wasmBridge = new wasm_bridge_1.WasmBridge();',
      'const wasmBridge = new wasm_bridge_1.WasmBridge(); globalThis.ringsideBridge = wasmBridge;'],
  ];
  for (const [before, after] of changes) {
    if (!glue.includes(before)) throw new Error(`trace_processor's glue has no "${before}": other assets than v55?`);
    glue = glue.replace(before, after);
  }
  return glue;
}

/** What a web worker has and node has not. */
function pretendToBeAWorker(assets) {
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope ??= function WorkerGlobalScope() {};
  if (!globalThis.location) {
    Object.defineProperty(globalThis, 'location', { value: { href: `${pathToFileURL(assets).href}/` }, configurable: true });
  }
}

/** An engine that speaks with the module over a message channel; `failed` rejects when the module gives up. */
async function startEngine(assets) {
  const { EngineBase } = await import(pathToFileURL(join(assets, 'engine.mjs')));
  pretendToBeAWorker(assets);
  globalThis.ringsideWasm = new Uint8Array(readFileSync(join(assets, 'trace_processor.wasm')));
  vm.runInThisContext(patchedGlue(assets), { filename: 'engine_bundle.js' });
  const { port1, port2 } = new MessageChannel();
  let giveUp;
  const failed = new Promise((_, reject) => { giveUp = reject; });
  failed.catch(() => {});
  class Engine extends EngineBase {
    id = 'ringside';
    mode = 'WASM';
    constructor() {
      super();
      port2.onmessage = (message) => {
        if (!(message.data instanceof Uint8Array)) return;
        try { this.onRpcResponseBytes(message.data); } catch (error) { giveUp(error); }
      };
    }
    rpcSendRequestBytes(bytes) { port2.postMessage(bytes); }
    [Symbol.dispose]() { port2.close(); }
  }
  await globalThis.ringsideBridge.initialize(port1);
  return { engine: new Engine(), failed };
}

async function load({ engine, failed }, path) {
  const file = openSync(path);
  for (;;) {
    const bytes = new Uint8Array(kChunkBytes);
    const count = readSync(file, bytes, 0, kChunkBytes, null);
    if (count === 0) break;
    await Promise.race([engine.parse(bytes.subarray(0, count)), failed]);
  }
  closeSync(file);
  await Promise.race([engine.notifyEof(), failed]);
}

async function query({ engine, failed }, sql) {
  const result = await Promise.race([engine.query(sql), failed]);
  const columns = result.columns();
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(Object.fromEntries(columns.map((column) => {
      const value = row.get(column);
      return [column, typeof value === 'bigint' ? Number(value) : value];
    })));
  }
  return rows;
}

const [assets, path, ...queries] = process.argv.slice(2);
console.warn = () => {};  // the engine warns about result fields that it does not know
try {
  const started = await startEngine(resolve(assets));
  await load(started, path);
  const results = [];
  for (const sql of queries) results.push(await query(started, sql));
  console.log(JSON.stringify(results));
  process.exit(0);
} catch (error) {
  console.error(String(error.message ?? error));
  process.exit(2);
}
