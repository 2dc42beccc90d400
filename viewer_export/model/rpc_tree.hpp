// Calls as trees: who called whom while being served, what ran inside, and the names that follow from it.
//
//   rpc_sync#nested(worker0 -> worker1)                                                          a call
//   rpc_sync#nested(worker0 -> worker1)#remote_op: rpc_sync#udf(worker1 -> worker2)              a call made while serving it
//   rpc_sync#nested(worker0 -> worker1)#remote_op: rpc_sync#udf(...)#remote_op: aten::rand       an operator that served that one
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export::model {

/// The call has a half that is a record of these dumps.
bool is_real(const Job& job, const Call& call);
/// The index says that the callee's answer is the one that the caller had, and both ends are in these dumps.
bool reply_joined(const Job& job, const Call& call);
/// Sent and received, and answered by nobody.
bool is_message(const Job& job, const Call& call);
/// How torch names a fetch, to_here(), from one worker to another.
std::string fetch_name(const std::string& from, const std::string& to);

/// Who called whom by what, as workers are named, in messages by their ranks; empty: unknown.
struct CallParts {
    std::string from;
    std::string to;
    std::string method;  ///< `rpc_sync#f`, `to_here`, `MPI_Send`
};
CallParts parts_of(const Job& job, const Call& call);

/// torch's own traffic (`torch.distributed.rpc.api`, RRef and autograd bookkeeping): hidden unless asked for.
bool is_internal(const Job& job, const Call& call);
/// A parent chain that comes back to itself (a damaged index) is cut where it closes.
void break_parent_cycles(std::vector<Call>& calls);
/// Each call gets the trace id of the call at its tree's root. @param calls  without cycles
void take_roots_trace(std::vector<Call>& calls);

/// Names of calls and chains. Chains that read alike are one: views group by their number and ask for the text last.
class RpcNames {
public:
    explicit RpcNames(const Job& job);

    /// @return the call's own name, `rpc_sync#f(worker0 -> worker1)`
    const std::string& own(Index call) const { return names_[own_[call]]; }
    /// @return the number of the chain that ends with this call
    Index chain(Index call) const { return chain_[call]; }
    /// @return the number of the chain that what this half serves belongs to
    Index chain_of_half(Index half) const { return chain_[job_->halves[half].call]; }
    /// @return a chain's names, outermost first, with `#remote_op: ` between
    std::string text(Index chain) const;
    /// @return a chain's text, `#remote_op: `, `name`; just `name` for kNone
    std::string text(Index chain, const std::string& name) const;

private:
    struct Link {
        Index parent;
        Index own;
    };
    Index link(Index parent, Index own);

    const Job* job_;
    Names names_;
    std::vector<Index> own_;
    std::vector<Index> chain_;
    std::vector<Link> links_;
    std::map<std::pair<Index, Index>, Index> known_;
};

/// Where a range lies.
struct RangeRef {
    Index lane;
    Index range;
};

/// What ran while each request was served.
class RequestIndex {
public:
    explicit RequestIndex(const Job& job);

    /// @param half  a server half
    /// @return the ranges that began while it was served, by lane and begin
    std::span<const RangeRef> ranges(Index half) const;
    /// @param call  its children: the calls made while its server half was served
    std::span<const Index> calls(Index call) const;

private:
    std::vector<std::size_t> range_first_;
    std::vector<RangeRef> ranges_;
    std::vector<std::size_t> call_first_;
    std::vector<Index> calls_;
};

}  // namespace ringside::viewer_export::model
