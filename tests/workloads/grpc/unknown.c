/* A core of gRPC of a version that nobody knows. */
const char* grpc_version_string(void);
int grpc_call_start_batch(void* call, const void* ops, unsigned long count, void* tag,
                          void* reserved);

const char* grpc_version_string(void) {
    return "99.0.0";
}
int grpc_call_start_batch(void* call, const void* ops, unsigned long count, void* tag,
                          void* reserved) {
    return call == 0 && ops == 0 && count == 0 && tag == 0 && reserved == 0;
}
