// A preload that has nothing in it: what any preload costs.
extern "C" int nothing;
int nothing = 0;
