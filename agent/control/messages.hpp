// The control messages: made, verified and taken apart. One FlatBuffer a ZeroMQ frame; control.fbs says what is in them. What comes in is
// a stranger's bytes until unpack_message has passed it. Public: the command speaks through the client in these types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "schema/control_generated.h"
#include "schema/result.hpp"

namespace ringside::agent {

/// An agent takes no larger request, nor a client a larger reply.
inline constexpr std::size_t kMostRequestBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMostReplyBytes = std::size_t{64} << 20;
/// Nor a leader, or a relay, of a node.
inline constexpr std::size_t kMostAnswerBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMostPeers = 16'384;
inline constexpr std::size_t kMostPids = 65536;
inline constexpr std::uint32_t kMostHalvesInPage = 50000;
inline constexpr std::uint32_t kHalvesInPage = 5000;  ///< that are told at a time: half a megabyte
inline constexpr std::size_t kMostErrorBytes = 8192;
inline constexpr std::uint32_t kMostPartBytes = 262144;  ///< of a file that is fetched
/// An agent passes messages on to no more nodes for one leader. A message that is passed on comes in another one, which needs so many bytes beside it.
inline constexpr std::size_t kMostRelayed = 256;
inline constexpr std::size_t kEnvelopeBytes = 4096;
/// With its envelope: a relay may be of before kMostRequestBytes was twice that.
inline constexpr std::size_t kMostThroughRelay = (std::size_t{1} << 19) - kEnvelopeBytes;
inline constexpr std::size_t kMostClockSamples = 8;
/// Of more peers than these a leader is asked to reach most through others. Those of one host answer sooner without (tests/bench/README.md); commands of before ask
/// for 512, the field's default.
inline constexpr std::uint32_t kMostDirectPeers = 1024;
/// Of one capture; the first one's round number too.
inline constexpr std::uint32_t kMostIterations = 100'000;

using MessageBytes = std::vector<std::uint8_t>;

/// The bytes of a message, whatever is in it.
MessageBytes pack_message(std::uint64_t id, fbs::ContentUnion content);

/// @param content  a native table of control.fbs: fbs::PingRequestT{}, ...
template <class Table>
MessageBytes pack(std::uint64_t id, Table content) {
    fbs::ContentUnion any;
    any.Set(std::move(content));
    return pack_message(id, std::move(any));
}

/// Who may have said it: an agent takes apart nothing but requests, a leader nothing but what nodes and relays answer.
enum class Speaker { kAnybody, kClient, kNode };

/// Verifies and takes apart, which comes to no more than a small multiple of the message's bytes. The result's content is never NONE and never null.
/// @errors Input: not a message, damaged, a kind that this version does not know, one thing told many times, or a list longer than any honest one; a kind that nodes
/// do not say. Usage: one that clients do not say
/// @thread thread-safe
schema::Result<fbs::MessageT> unpack_message(std::span<const std::uint8_t> bytes,
                                             Speaker speaker = Speaker::kAnybody);

/// For the answer to a message that unpack_message() refuses, whatever the reason.
/// @return 0: it does not even begin like one
std::uint64_t id_of_refused(std::span<const std::uint8_t> bytes);

/// What kind of message it is: verified as unpack_message does, but not taken apart.
/// @errors as unpack_message
/// @thread thread-safe
schema::Result<fbs::Content> kind_of(std::span<const std::uint8_t> bytes,
                                     Speaker speaker = Speaker::kAnybody);

/// @return the message's content if it is a Table, else null
template <class Table>
Table* content_as(fbs::MessageT& message) {
    if (message.content.type != fbs::ContentUnionTraits<Table>::enum_value) return nullptr;
    return static_cast<Table*>(message.content.value);
}

/// Errors travel as they are.
fbs::ErrorReplyT error_reply(const schema::Error& error);
schema::Error error_of(const fbs::ErrorReplyT& reply);

/// An agent of before id_of_refused() answers what it can't read without its id.
/// @return the error, where `message` is such an answer
std::optional<schema::Error> unread_by(const std::string& endpoint, fbs::MessageT& message);

}  // namespace ringside::agent
