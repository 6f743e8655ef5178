package replica

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Limits of a configuration.
const (
	MaxReplicas     = 16 // the largest fleet in which all instances ask each other before the group is founded
	MaxFounders     = 64
	MaxFounderBytes = 128 // of one name
)

// Record describes an instance and is part of its session's Open. The state machine keeps it
// without reading it; other instances decode it to show who holds a lock. It is JSON, so that a
// later version can add fields.
type Record struct {
	Instance string `json:"instance"`
	Name     string `json:"name"`
	Addr     string `json:"addr"`
	Zone     string `json:"zone,omitempty"`
	Version  string `json:"version,omitempty"` // of its build of this library, for display
	Rules    uint32 `json:"rules"`             // highest rules version that this build knows
	Settings Named  `json:"settings"`
	// it only takes locks: it is no instance, can have no replica and has no settings
	Guest bool `json:"guest,omitempty"`
	// the name in its capability, which the leader has written; empty for a full instance
	For  string `json:"for,omitempty"`
	Tier string `json:"tier,omitempty"` // of its derived certificate; the leader has written it
	Own  bool   `json:"own,omitempty"`  // one of several sessions: opened by NewSession
	// the names behind Settings.Founders: only a founder lists them, and only if they fit
	Founders []string `json:"founders,omitempty"`
	// when the instance became a member of its group, in Unix milliseconds of its own clock
	Since int64 `json:"since,omitempty"`

	leaving bool // from its session, not part of the encoded record
}

// Named are the settings of a group in a small form. Equal values name equal settings.
type Named struct {
	Replicas int `json:"replicas,omitempty"`
	// fingerprint of the names, which could be too long for a record
	Founders     string        `json:"founders,omitempty"`
	FounderCount int           `json:"founder_count,omitempty"`
	Voters       int           `json:"voters"`
	SessionTTL   time.Duration `json:"session_ttl_ns"`
	Grace        time.Duration `json:"grace_ns"` // 0 means none
	SessionBytes int64         `json:"session_bytes"`
	GroupBytes   int64         `json:"group_bytes"`
}

// Encode leaves out the names of the founders if they are too long.
func (r Record) Encode() []byte {
	b, err := json.Marshal(r)
	if err == nil && len(b) > lockfsm.MaxRecordBytes/2 { // the other half is for what Stamp or a later build adds
		r.Founders = nil
		b, err = json.Marshal(r)
	}
	if err != nil { // strings and numbers always marshal
		return nil
	}
	return b
}

// DecodeRecord returns the zero record, which supports no rules and agrees to no settings, for
// bytes that it cannot read.
func DecodeRecord(b []byte) Record {
	var r Record
	if json.Unmarshal(b, &r) != nil {
		return Record{}
	}
	return r
}

// ID returns the instance's ID. Zero means none.
func (r *Record) ID() nodeid.ID {
	id, err := nodeid.Parse(r.Instance)
	if err != nil {
		return nodeid.ID{}
	}
	return id
}

// founders returns the names of the founders that the record lists, ascending. It returns nil if
// they are not those of its settings, or not valid in a configuration.
func (r *Record) founders() []string {
	valid := func(name string) bool { return name != "" && len(name) <= MaxFounderBytes && plain.Is(name) }
	listed := Settings{Founders: Unique(r.Founders)}
	if n := len(listed.Founders); n == 0 || n > MaxFounders || n != len(r.Founders) || !all(listed.Founders, valid) {
		return nil
	}
	if is := listed.Named(); is.Founders != r.Settings.Founders || is.FounderCount != r.Settings.FounderCount {
		return nil
	}
	return listed.Founders
}

func all(names []string, is func(string) bool) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !is(name) })
}

// Proof is what a connection has authenticated about its peer.
type Proof struct {
	Instance nodeid.ID
	Addr     string
	Rights   *capability.Capability // nil for a full instance
}

// Vouch reports whether the record with which a peer opens a session claims only what the
// connection has authenticated. It also returns the hash of the peer's capability, zero for a full
// instance. A session from NewSession, or of another program, names no instance.
func (p Proof) Vouch(record []byte) (capability [32]byte, ok bool) {
	capability = p.Rights.Hash()
	r := DecodeRecord(record)
	if r.Instance != "" && r.ID() != p.Instance || r.Addr != "" && r.Addr != p.Addr {
		return capability, false
	}
	if r.Instance != "" && p.Rights != nil {
		return capability, false
	}
	return capability, true
}

// Stamp writes into the record with which a peer opens a session what its certificate grants.
func Stamp(rights *capability.Capability, record []byte) []byte {
	r := DecodeRecord(record)
	r.Guest, r.For, r.Tier = true, rights.For(), capability.TierOf(rights).String()
	stamped, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return stamped
}

// HolderName returns what a holder's instance calls itself, escaped for display.
func HolderName(record []byte, session lockfsm.SessionID) string {
	r := DecodeRecord(record)
	if r.For != "" {
		return plain.Text(r.Name + " (for " + r.For + ")")
	}
	if r.Name != "" {
		return plain.Text(r.Name)
	}
	return fmt.Sprintf("session %d", session)
}
