package lockfsm

// This file contains stays.
//
// A sticky request is an ordinary exclusive or shared request. Once granted it is a stay: its
// session keeps it after its caller has unlocked, and grants the lock to its next callers itself.
// The machine does not know whether a caller holds the lock at present. It therefore does three
// things for a stay:
//
//   - The grant reserves tokens, which only the session of the stay gives to callers. The token of
//     the grant identifies the stay, and no caller gets it. Later grants of any key have higher
//     tokens. So the tokens of the callers of a shared stay are above those of all earlier writers
//     and below those of all later ones.
//   - A waiting request causes a notice, as for any request with Notice. The session then releases
//     the stay soon. A writer that waits for several shared stays is granted when all of them are
//     released.
//   - A request with Try waits for the answers of the sessions, which are Release or [InUse], if
//     the entries inside (see lock) are stays, or requests with Try that wait for answers of
//     further keys, and only requests with Try wait. So stays alone, without a caller, do not cause
//     Held. One InUse causes Held, and so does the grant of a request inside. A Release does not,
//     and the request goes on waiting for the other stays. If a request that is no stay holds the
//     lock, or if a request without Try waits behind the stays, the result is Held. If there is no
//     holder at all, but a request without Try is in the queue, the lock is not free either, and
//     the result is QueueFull. So it is if the request would ask more than maxAsked stays.
//
// The rules themselves are in fire.go, notice.go and requests.go. The session also reports a
// caller that has ended without a release, so that the audit log has it, see [Lapse].

// StayTokens is the number of tokens that the grant of a stay reserves.
const StayTokens = 1024

// maxAsked bounds the stays that a request with Try asks. Behind more stays its queue is full.
const maxAsked = 256

type stay struct {
	last  Token    // the last reserved token; zero while the request waits, and if none could be reserved
	asked Revision // see Change.Asked

	yields bool // see EachYield; not replicated
}
