// Defines what the slot tests hook; stands for a framework's library.
extern "C" {
int rs_called(int x) {
    return x + 1;
}
int rs_pointed_at(int x) {
    return x + 2;
}
int rs_in_table(int x) {
    return x + 3;
}
int rs_lazy(int x) {
    return x + 4;
}
int rs_other(int x) {
    return x + 5;
}
}
