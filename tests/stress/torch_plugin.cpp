// What torch_churn.py records with, by ctypes: the board, and one range at a time, inside which it runs an operator of torch.
#include "inject/sources/api/ringside.h"
#include "tests/stress/board.hpp"

using ringside::stress::Board;
using ringside::stress::map_board;
using ringside::stress::Recorder;

namespace {

void push(std::uint64_t payload) {
    ringside_attributes attributes{};
    attributes.size = sizeof attributes;
    attributes.payload_type = RINGSIDE_UNSIGNED;
    attributes.payload.u = payload;
    ringside_range_push_with("torch range", &attributes);
}

}  // namespace

extern "C" {

Board* churn_open(const char* path) {
    return map_board(path);
}

std::uint32_t churn_round(const Board* board) {
    return board->round.load();
}

/// One more process that records.
void churn_life(Board* board) {
    board->lives.fetch_add(1);
}

/// One of those that go through all rounds rests, or (-1) goes on.
void churn_resting(Board* board, int one) {
    board->resting.fetch_add(static_cast<std::uint32_t>(one));
}

Recorder* churn_recorder(Board* board) {
    return new Recorder(board);
}

std::uint32_t churn_random(Recorder* recorder, std::uint32_t below) {
    return recorder->random(below);
}

/// @return 0: the log is full, nothing was begun
int churn_begin(Recorder* recorder) {
    return recorder->record(1, push, push) ? 1 : 0;
}

void churn_end() {
    ringside_range_pop();
}

void churn_rest(Recorder* recorder) {
    recorder->rest();
}

void churn_close(Recorder* recorder) {
    recorder->rest();
    delete recorder;
}
}
