package check

import (
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// LeaseStepKind is a step of the hand-over of a lease, as model/lease.pml has them.
type LeaseStepKind uint8

// These are the steps. The comment of each names its fields besides Kind, Client or Voter, and
// Clock, the time on the clock of that process.
const (
	// OpenSent and OpenHeard: a client asks for a session, and hears that it has one. Nonce; and
	// Session, TTL.
	OpenSent LeaseStepKind = 1 + iota
	OpenHeard
	// AttachSent: a client attaches its session. Session, Epoch, Named.
	AttachSent
	// RenewSent and RenewHeard: a renewal is sent, and its acknowledgement is heard. Session, Epoch,
	// Seq.
	RenewSent
	RenewHeard
	// FreeSent: a client sends a Release, Cancel or Detach. Session, Number.
	FreeSent
	// StateHeard: a client hears that a request is granted. Session, Number, Token.
	StateHeard
	// RecallHeard: a client hears that another request waits for its stay. Token.
	RecallHeard
	// Published: a client publishes the deadline of its lease. Deadline; zero means none.
	Published
	// Believes: a caller holds a lock by its own clock, with the token of the hold in the state.
	Believes
	// Keeps and Passes: a client keeps a lock, and a caller gets a pass of it. Token.
	Keeps
	Passes
	// Forgets: a hold has ended for its client, for whatever reason. Token.
	Forgets
	// Leads: a voter has applied the first entry of its term. Group, Term.
	Leads
	// RenewCame: a renewal arrives at a voter. Session, Epoch, Seq.
	RenewCame
	// RoundAsked and RoundConfirmed: a voter asks its log whether it still leads, and the log says
	// that a quorum has confirmed it since. Seq is the number of the round.
	RoundAsked
	RoundConfirmed
	// RenewTold: a voter acknowledges a renewal. Session, Epoch, Seq.
	RenewTold
	// OpenApplied, AttachApplied, GrantApplied and EndApplied: a voter applies that a session begins
	// (Session, TTL), is attached (Session, Epoch, Recalled), is granted a lock (Session, Number), or
	// ends.
	OpenApplied
	AttachApplied
	GrantApplied
	EndApplied
	// ExpireProposed and ExpireApplied: a voter proposes the end of a session in its term, and applies
	// it. Session, Term: that of the decision, and that of the entry; and Ended, if the process that
	// has opened the session has ended, so that its TTL need not pass.
	ExpireProposed
	ExpireApplied
	// GrantTold and RecallTold: a voter tells a client that a request is granted, and that another
	// waits for it. Session, Number.
	GrantTold
	RecallTold
	// AttachTold: a voter tells a client that it is attached. Session, Epoch.
	AttachTold
	// Stopped: the replica of a voter ends, or restores a snapshot.
	Stopped
	// Settled: the end of a run in which all is quiet. Left is the number of requests in the state
	// that no caller wants.
	Settled
)

// LeaseStep is one step of a trace. Steps are in the order in which they happen.
type LeaseStep struct {
	Kind     LeaseStepKind
	Client   string // the process, in one incarnation
	Voter    string // the replica, in one run
	Clock    time.Duration
	Group    uint64
	Term     uint64
	Nonce    lockfsm.Nonce
	Session  lockfsm.SessionID
	Epoch    lockfsm.Epoch
	Number   lockfsm.Number
	Token    lockfsm.Token
	Seq      uint64
	TTL      time.Duration
	Deadline time.Duration
	Named    []lockfsm.Range
	Recalled []lockfsm.Number
	Left     int
	Ended    bool
}

// LeaseRule is a rule of model/lease.pml. The word RULE in the model names each of them.
type LeaseRule string

// These are the rules of a lease.
const (
	FirstSending      LeaseRule = "first-sending"
	SentTime          LeaseRule = "sent-time"
	Margin            LeaseRule = "margin"
	LeadConfirmed     LeaseRule = "lead-confirmed"
	AppliedFirst      LeaseRule = "applied-first"
	NotExpiring       LeaseRule = "not-expiring"
	FullTTL           LeaseRule = "full-ttl"
	OwnTerm           LeaseRule = "own-term"
	NewestAttachment  LeaseRule = "newest-attachment"
	LossIsFinal       LeaseRule = "loss-is-final"
	CancelFrees       LeaseRule = "cancel-frees"
	GrantIsTold       LeaseRule = "grant-is-told"
	ReleasedIsOver    LeaseRule = "released-is-over"
	NamesWhatIsKept   LeaseRule = "names-what-is-kept"
	RecallIsRepeated  LeaseRule = "recall-is-repeated"
	RecallIsRespected LeaseRule = "recall-is-heeded"
)

// leaseRules returns what each rule says.
func leaseRules() map[LeaseRule]string {
	return map[LeaseRule]string{
		FirstSending:      "a new lease counts from the first sending of its Open",
		SentTime:          "a lease counts from the sending of the acknowledged renewal",
		Margin:            "a client's lease is shorter than the leader's by a fiftieth",
		LeadConfirmed:     "a deposed leader acknowledges no renewal",
		AppliedFirst:      "only an attachment that is applied is acknowledged",
		NotExpiring:       "a session whose end is proposed is not acknowledged",
		FullTTL:           "a leader waits for a TTL of its own clock before an expiry",
		OwnTerm:           "an expiry counts only in the term in which it was decided",
		NewestAttachment:  "only the newest attachment is acknowledged",
		LossIsFinal:       "a hold that was lost is never held again",
		CancelFrees:       "what no caller wants is freed",
		GrantIsTold:       "the client hears of a grant before the next acknowledgement",
		ReleasedIsOver:    "no caller gets a pass of a stay that was given back",
		NamesWhatIsKept:   "an Attach names all that the client holds or keeps",
		RecallIsRepeated:  "a new attachment hears of the recall of its stay",
		RecallIsRespected: "few callers get a pass after the recall",
	}
}

// LeaseRules returns all rules.
func LeaseRules() []LeaseRule { return slices.Sorted(maps.Keys(leaseRules())) }
