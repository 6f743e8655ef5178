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
	"github.com/mortise-lock/mortise/session"
)

// Limits of a configuration.
const (
	// the bound is low, because with Replicas every instance is a founder and asks all others
	MaxReplicas     = 16
	MaxFounders     = 64
	MaxFounderBytes = 128 // bytes of one name
)

// Record describes an instance and is part of the command that opens its session. The state machine
// does not decode it. Other instances decode it to show which instance holds a lock.
type Record struct {
	Instance string `json:"instance"`
	Name     string `json:"name"`
	Addr     string `json:"addr"`
	Zone     string `json:"zone,omitempty"`
	Version  string `json:"version,omitempty"` // version of the build, for display
	Rules    uint32 `json:"rules"`             // highest rules version that the build supports
	// Build is the time of the commit from which the program was built, in Unix seconds. Zero means
	// unknown. No connection proves it: it is a hint for the choice of the next leader.
	Build    int64 `json:"build,omitempty"`
	Settings Named `json:"settings"`
	// a client that only takes locks: it is no instance, cannot have a replica and has no settings
	Guest bool `json:"guest,omitempty"`
	// name in the opener's capability, written by the leader; empty for a full instance
	For  string `json:"for,omitempty"`
	Tier string `json:"tier,omitempty"` // tier of the opener's derived certificate, written by the leader
	Own  bool   `json:"own,omitempty"`  // set if NewSession opened the session
	// the names whose fingerprint is Settings.Founders; only a founder lists them, and only if they
	// fit
	Founders []string `json:"founders,omitempty"`
	// when the instance became a member of its group, in Unix milliseconds of its own clock
	Since int64 `json:"since,omitempty"`

	leaving bool // copied from the session; not part of the encoded record
}

// Named is a short form of the settings of a group. Equal values mean equal settings.
type Named struct {
	Replicas int `json:"replicas,omitempty"`
	// fingerprint of the founders' names, which may be too long for a record
	Founders     string        `json:"founders,omitempty"`
	FounderCount int           `json:"founder_count,omitempty"`
	Voters       int           `json:"voters"`
	SessionTTL   time.Duration `json:"session_ttl_ns"`
	Grace        time.Duration `json:"grace_ns"` // 0 means none
	SessionBytes int64         `json:"session_bytes"`
	GroupBytes   int64         `json:"group_bytes"`
}

// OwnSession returns the record of a further session of the same instance. It names no instance.
func (r Record) OwnSession() Record {
	r.Instance, r.Own, r.Founders = "", true, nil
	return r
}

// Encode encodes the record. It omits the names of the founders if they are too long.
func (r Record) Encode() []byte {
	b, err := json.Marshal(r)
	// the rest is reserved for additions by Stamp or a later build
	if err == nil && len(b) > lockfsm.MaxRecordBytes/2 {
		r.Founders = nil
		b, err = json.Marshal(r)
	}
	if err != nil {
		return nil
	}
	return b
}

// DecodeRecord decodes a record. For malformed bytes it returns the zero record, which supports no
// rules version and agrees to no settings.
func DecodeRecord(b []byte) Record {
	var r Record
	if json.Unmarshal(b, &r) != nil {
		return Record{}
	}
	return r
}

// ID returns the instance's ID, or zero if there is none.
func (r *Record) ID() nodeid.ID {
	id, err := nodeid.Parse(r.Instance)
	if err != nil {
		return nodeid.ID{}
	}
	return id
}

// founders returns the founders' names that the record lists, in ascending order. It returns nil if
// the names do not match the fingerprint, or are not valid in a configuration.
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

// Proof is the authenticated identity of the peer of a connection.
type Proof struct {
	Instance nodeid.ID
	Addr     string
	Rights   *capability.Capability // nil for a full instance
}

// Limits of the texts of a record, in bytes. They are those of the configuration.
const (
	maxNameBytes = 128
	maxZoneBytes = 64
)

// Vouch reports whether the record with which a peer opens a session claims only what the
// connection has authenticated, and whether its texts are those of a valid configuration. The
// record of a session from NewSession, or of a client that only takes locks, names no instance.
func (p Proof) Vouch(record []byte) bool {
	r := DecodeRecord(record)
	switch {
	case r.Instance != "" && (r.ID() != p.Instance || p.Rights != nil), r.Addr != "" && r.Addr != p.Addr:
		return false
	case len(r.Name) > maxNameBytes, len(r.Zone) > maxZoneBytes, len(r.Version) > maxNameBytes:
		return false
	}
	return plain.Is(r.Name) && plain.Is(r.Zone) && plain.Is(r.Version)
}

// Outdated reports that the build of an instance, which has opened a session with this record, does
// not know the rules in force. A replica of such a build would end with the leader's snapshot.
func Outdated(record []byte, inForce uint32) session.Outdated {
	if r := DecodeRecord(record); r.Rules < inForce && r.Rules > 0 && !r.Guest {
		return session.Outdated{Group: inForce, Build: r.Rules}
	}
	return session.Outdated{}
}

// Stamp adds the rights of the peer's certificate to the record with which the peer opens a
// session.
func Stamp(rights *capability.Capability, record []byte) []byte {
	r := DecodeRecord(record)
	r.Guest, r.For, r.Tier = true, rights.For(), capability.TierOf(rights).String()
	stamped, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return stamped
}

// HolderName returns the name in a holder's record, escaped for display.
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
