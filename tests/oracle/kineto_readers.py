"""What the field's tools make of a directory with one Kineto file a rank, as one JSON object. Run by tools/setup_oracles' Python.

    kineto_readers.py DIRECTORY

hta: HolisticTraceAnalysis' temporal breakdown and overlap of each rank, its last step included, in nanoseconds as given.
tensorboard: the PyTorch plugin's operator and kernel tables of each worker.
"""
import json
import logging
import os
import sys
import warnings

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # else it cuts times to whole microseconds
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)


def hta(directory):
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_dir=directory, include_last_profiler_step=True)
    breakdown = analysis.get_temporal_breakdown(visualize=False)
    overlap = analysis.get_comm_comp_overlap(visualize=False)
    launches = analysis.get_cuda_kernel_launch_stats(ranks=sorted(int(rank) for rank in breakdown["rank"]), visualize=False)
    return {
        "breakdown": {int(row["rank"]): {key[:-len("(us)")]: float(row[key]) for key in row if key.endswith("(us)")}
                      for row in breakdown.to_dict("records")},
        "overlap_percent": {int(row["rank"]): float(row["comp_comm_overlap_pctg"]) for row in overlap.to_dict("records")},
        "launches": {int(rank): len(frame) for rank, frame in launches.items()},
    }


def table_rows(table):
    columns = [column["name"] for column in table["data"]["columns"]]
    return [dict(zip(columns, row)) for row in table["data"]["rows"]]


def tensorboard(directory):
    from torch_tb_profiler.consts import WORKER_PATTERN
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    workers = {}
    for name in sorted(os.listdir(directory)):
        match = WORKER_PATTERN.match(name)
        if not match:
            continue
        # In this process: the plugin's own loader starts one a file, and waits for ever where one of them fails.
        data = RunProfileData.parse(match.group(1), 1, os.path.join(directory, name), directory)
        profile = RunGenerator(match.group(1), 1, data).generate_run_profile()
        workers[match.group(1)] = {
            "operators": profile.operation_table_by_name["data"],
            "kernels": table_rows(profile.kernel_table) if profile.kernel_table else [],
            "gpus": profile.gpu_summary,
            "steps": data.steps_names,
        }
    return workers


if __name__ == "__main__":
    print(json.dumps({"hta": hta(sys.argv[1]), "tensorboard": tensorboard(sys.argv[1])}))
