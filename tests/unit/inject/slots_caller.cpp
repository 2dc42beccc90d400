// Calls the provider through every kind of slot: JUMP_SLOT (lazy, or bound at load), GLOB_DAT, and R_X86_64_64 of a constant table in
// RELRO pages, as a vtable has it.
extern "C" {
int rs_called(int);
int rs_pointed_at(int);
int rs_in_table(int);
int rs_lazy(int);
int rs_other(int);
int rs_nobody_defines(int) __attribute__((weak));

using Function = int (*)(int);
extern const Function kRsTable[];
const Function kRsTable[] = {rs_in_table};

int call_called(int x) {
    return rs_called(x);
}
int call_pointed_at(int x) {
    Function volatile function = rs_pointed_at;
    return function(x);
}
int call_in_table(int x) {
    const Function* volatile table = kRsTable;
    return table[0](x);
}
int call_lazy(int x) {
    return rs_lazy(x);
}
int call_other(int x) {
    return rs_other(x);
}
int weak_is_there(int) {
    return rs_nobody_defines != nullptr ? 1 : 0;
}
}
