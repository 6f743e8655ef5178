// Package desk is the language in which somebody who is no instance asks one: cmd/mortise, which wants to see what holds, who waits and why
// there is no leader, and now and then to end something.
//
// Any instance answers, not only the leader: what the leader has to say (who holds what) the asked instance asks it, as its own Node.List
// does; what needs no leader (its own picture, a recovery) it answers itself. So one reachable instance is enough, and a group without a
// majority can still be asked what is missing.
//
// # Guarantees
//
// A question is one message, an answer one message, both JSON behind [Mark]: they are for people, rare, and gain fields. A field that is
// not known is passed over, and a question that is not known is answered by an error.
//
// # Security
//
// Questions come over the port of the instance, so the asker has shown a secret or a certificate. With the root secret it may do what every
// instance may. With a derived secret it may do what that grants: the asked instance checks it, and forwards the question with the text
// of the rights to the leader, which checks it again.
//
// # Concurrency, failure
//
// The package is values only. An error is a text in the answer; [Answer.Kind] says whether to ask again.
//
// # Limits
//
// A page of the list has at most a hundred keys, a page of the members or the sessions a hundred, and a watch begins with at most 20,000 things. What is told of an instance are the root's Status, Health, Member and KeyInfo, as JSON that this
// package does not read: it stands below the root, which imports it.
//
// # Refused alternative
//
// An HTTP port of its own for administration. It would need a second address, a second kind of security and a second answer to "who is
// there", and be closed where it is needed most.
package desk

import (
	"encoding/json"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Mark begins a question of this package; no other question to an instance begins so.
const Mark = "desk"

// Op says what is asked.
type Op string

// The questions.
const (
	Here     Op = "here"     // the picture of the instance that is asked, which asks no other
	Health   Op = "health"   // how the voters stand, as the leader says
	List     Op = "list"     // a page of the keys that begin with Key
	Peek     Op = "peek"     // the queue of Key
	Watch    Op = "watch"    // what has happened behind After to the keys that begin with Key; waits a while if nothing has
	Members  Op = "members"  // a page of the members, with the oldest session first, that begins at From
	Sessions Op = "sessions" // a page of the sessions, the oldest first, that begins at From
	Audit    Op = "audit"    // the last ends of holds by force or by silence
	Put      Op = "put"      // set the data of Key to Data, or take it away if Data is empty, if it still is at Revision
	Evict    Op = "evict"    // end the hold of Key with Token
	Recover  Op = "recover"  // give up Group, whose majority is lost for good
)

// Question is what is asked.
type Question struct {
	Op     Op
	Key    string `json:",omitempty"` // or prefix
	Token  uint64 `json:",omitempty,string"`
	By     string `json:",omitempty"` // who asks, for the log of the leader and for the holder; 1 to 128 bytes of an Evict
	Reason string `json:",omitempty"`

	Data     []byte        `json:",omitempty"`        // of a Put
	Revision uint64        `json:",omitempty,string"` // of a Put: what was seen; 0: there was none
	Nonce    lockfsm.Nonce `json:",omitzero"`         // of a Put: random, and the same when the question is repeated

	Group string `json:",omitempty"` // as Status.Group shows it
	Next  lockfsm.Cursor
	After uint64                `json:",omitempty,string"` // of a Watch: the Position of the answer before; 0: begin with what there is now
	From  lockfsm.SessionCursor // of Members and Sessions
}

// Kind sorts errors.
type Kind string

// The kinds of errors.
const (
	NotReady Kind = "not ready" // no leader has answered in time, or the instance is just starting: ask again, or another
	Denied   Kind = "denied"    // the secret or certificate of the asker does not grant it: Verb, Key and For say what is missing
	Conflict Kind = "conflict"  // of a Put: the data is not at Revision; nothing was changed
	Wrong    Kind = "wrong"     // the question cannot be carried out, here or anywhere
)

// Answer is what is said to a question.
type Answer struct {
	Error string `json:",omitempty"`
	Kind  Kind   `json:",omitempty"`

	Verb string `json:",omitempty"` // with Denied, and in an answer to Here that is cut short: the right that is missing
	Key  string `json:",omitempty"` // with Denied: on which key, or prefix and *
	For  string `json:",omitempty"` // with Denied: the name in the asker's capability

	Status     json.RawMessage `json:",omitempty"` // of Here: the root's Status, but for Err and Health
	Failed     string          `json:",omitempty"` // of Here: Status.Err
	Durable    bool            `json:",omitempty"` // of Here: the instance has a Dir
	Replicas   int             `json:",omitempty"` // of Here: Config.Replicas
	Founders   []string        `json:",omitempty"` // of Here: Config.Founders
	SessionTTL int64           `json:",omitempty"` // of Here: Config.SessionTTL, in nanoseconds
	Leaderless int64           `json:",omitempty"` // of Here: for how long the instance has known no leader, in nanoseconds; 0: it knows one, or never did
	WallUnixMS int64           `json:",omitempty"` // of Here: the instance's wall clock

	Health json.RawMessage `json:",omitempty"` // of Health: the root's

	Keys     json.RawMessage `json:",omitempty"` // of List and Peek: a list of the root's KeyInfo
	Next     lockfsm.Cursor  // of List: where the next page begins
	More     bool            `json:",omitempty"`        // of List: there may be a next page
	Events   json.RawMessage `json:",omitempty"`        // of Watch and Audit: a list of the root's Event
	Position uint64          `json:",omitempty,string"` // of Watch: where the next question goes on
	Missed   bool            `json:",omitempty"`        // of Watch: what came behind After is not known any more, begin anew

	Members  json.RawMessage       `json:",omitempty"` // of Members: a list of the root's Member; More says that there may be others
	Sessions json.RawMessage       `json:",omitempty"` // of Sessions: a list of the root's SessionInfo; More says that there may be others
	From     lockfsm.SessionCursor // of Members and Sessions: where the next page begins
	Total    int                   `json:",omitempty"` // of Members: how many there are

	Revision uint64 `json:",omitempty,string"` // of Put: that of the data now; 0: there is none

	Ended bool `json:",omitempty"` // of Evict: this question has ended the hold
}
