"""The tables of dump.fbs and job.fbs, field by field in the order of those files."""
from .flat import Reader, Shape, Struct

kClock = Struct("Clock", "u64 ticks", "i64 monotonic_ns", "i64 realtime_ns", "u64 width_ticks")
kLaneTally = Struct("LaneTally", "u64 records", "u64 dropped", "u64 outside", "u64 lost", "u64 first_lost_ticks", "u64 last_lost_ticks")
kOpenRange = Struct("OpenRange", "u64 begin", "u64 key", "u64 argument", "u64 what")
kClockCorrection = Struct("ClockCorrection", "i64 reference_node_ns", "i64 offset_ns", "f64 drift_ppb", "i64 bound_ns")
kHalfRef = Struct("HalfRef", "u32 node", "u32 process", "u32 lane", "u32 generation", "u64 position")
# Its two HalfRefs are spread out: a struct of ours holds numbers alone.
kHalfFields = ("u32 node", "u32 process", "u32 lane", "u32 generation", "u64 position")
kCall = Struct("Call", "u64 trace_hi", "u64 trace_lo", "u64 span", *[f.replace(" ", " client_") for f in kHalfFields],
               *[f.replace(" ", " server_") for f in kHalfFields], "u64 key", "u64 parent_key", "i64 client_begin_ns", "i64 server_begin_ns",
               "i64 server_end_ns", "i64 client_end_ns", "u8 state", "u8 unfinished", "u8 reply", padding=5)

kIterations = Shape("Iterations", "str name", "u32 asked", "u32 count", "u64 first", "u64 begin_ticks", "u64 end_ticks", "bool beside")
kSource = Shape("Source", "u8 id", "u8 level", "str reason")

kDumpReader = Reader([
    kClock, kOpenRange, kLaneTally, kIterations,
    Shape("Calibration", "u64 reference_ticks", "i64 reference_ns", "f64 ticks_per_second", "f64 error_ppb", "u8 ticks_source"),
    Shape("FileHeader", "u32 version", "u32 min_reader", "str node", "str host", "str boot_id", "str job", "str agent_version",
          "u32 agent_pid", "u64 capture_id", "Calibration calibration", "u64 start_ticks", "u32 options"),
    kSource,
    Shape("Process", "u32 index", "u64 pid_namespace", "i32 pid", "i32 host_pid", "i32 parent_pid", "u32 uid", "u64 start_ticks",
          "i32 rank = -1", "str worker_name", "i32 worker_id = -1", "str executable", "[str] command_line", "str job",
          "u8 ticks_source", "Clock load_clock", "Clock capture_clock", "[Source] sources", "[u64] losses_before", "i64 start_delay_ns = -1",
          "ProcessEnd end", "str end_reason"),
    Shape("Name", "u32 id", "str text", "u16 flags", "u16 attribute"),
    Shape("Attribute", "u16 id", "u32 domain", "u32 category", "u32 colour", "u16 payload"),
    Shape("Names", "u32 process", "[Name] names", "[Attribute] attributes"),
    Shape("Context", "u8 state", "u64 key", "u64 trace_hi", "u64 trace_lo", "u64 span"),
    Shape("Block", "u32 process", "u32 lane", "u32 generation", "i32 tid", "str thread_name", "u64 first", "u64 last",
          "u64 base_ticks", "u32 records", "Context context", "[OpenRange] open", "[u8] data", "LaneTally tally", "Context end_context"),
    Shape("Blocks", "[Block] blocks"),
    Shape("LaneTotals", "u32 process", "u32 lane", "u32 generation", "i32 tid", "u64 written", "u64 kept", "u64 outside", "u64 lost",
          "u64 first_lost_ticks", "u64 last_lost_ticks"),
    Shape("ProcessEnd", "u32 process", "u8 fate", "u64 ticks", "[u64] losses", "u64 violations", "i64 start_delay_ns = -1",
          "Iterations iterations", "[OpenCall] open_calls", "[Group] groups"),
    Shape("OpenCall", "i32 tid", "u8 source", "str function", "u64 begin_ticks", "u64 group", "u64 sequence", "i32 peer = -2", "i32 tag = -1"),
    Shape("Group", "u64 id", "u8 source", "str label", "u32 size", "i32 rank", "i32 job_rank = -1", "u64 last"),
    Shape("Perturbation", "u64 records", "u64 cost_ns", "u64 job_time_ns", "i64 slowest_start_ns = -1", "i64 agent_cpu_ns = -1"),
    Shape("Footer", "u64 start_ticks", "u64 stop_ticks", "[LaneTotals] lanes", "[ProcessEnd] processes", "u64 records", "u64 lost",
          "u64 unknown_records", "u64 bytes", "f64 record_cost_ns", "Perturbation perturbation"),
    Shape("Packed", "u8 packing = 1", "u32 bytes", "[u8] data"),
    Shape("Chunk", "union:FileHeader|Process|Names|Blocks|Footer|Packed body"),
])

kJobReader = Reader([
    kClockCorrection, kHalfRef, kIterations, kSource, kCall,
    Shape("Node", "str name", "str host", "str endpoint", "str dump", "ClockCorrection clock", "i64 best_rtt_ns", "u32 pings",
          "i64 start_delay_ns", "str error"),
    Shape("Rpc", "u64 trace_hi", "u64 trace_lo", "u64 span", "i32 parent = -1", "u8 state", "bool unfinished", "HalfRef client",
          "HalfRef server", "i64 client_begin_ns", "i64 server_begin_ns", "i64 server_end_ns", "i64 client_end_ns", "bool reply"),
    Shape("ProcessVerdict", "u32 node", "u32 process", "i32 pid", "i32 rank = -1", "str command", "u8 verdict", "str reason",
          "u64 events", "u64 lost", "i64 start_delay_ns = -1", "Iterations iterations",
          "i32 host_pid", "u64 bytes", "[Source] sources", "str executable"),
    Shape("JobIndex", "u32 version", "u32 min_reader", "str job", "str leader", "u64 capture_id", "bool corrected = 1", "[Node] nodes",
          "[Rpc] rpcs", "[ProcessVerdict] verdicts", "u64 joined_requests", "u64 joined_replies", "u64 orphans", "u64 cut",
          "u64 unfinished", "u64 ambiguous", "u64 order_violations", "[Call] calls", "u32 frames"),
])

kFates = ("Running", "Exited", "Killed", "Replaced")
kLevels = ("Absent", "Off", "Full", "Degraded", "NotInstrumented")
kVerdicts = ("Captured", "NothingRecorded", "Exited", "Killed", "Hung", "Refused", "Unreachable", "NotInjected")
kRpcStates = ("Joined", "Orphan", "Cut")
kModes = ("unknown", "sync", "async", "async_jit", "remote", "fetch", "internal")
kStatuses = ("ok", "error", "timeout", "peer gone", "cancelled", "sent")
