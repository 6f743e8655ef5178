package mortise

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/transport"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// record is what an instance says of itself when it opens a session. The state machine keeps it unread; others decode it to tell
// people who holds a lock. It is JSON, so that a later version can add to it.
type record struct {
	Instance string   `json:"instance"`
	Name     string   `json:"name"`
	Addr     string   `json:"addr"`
	Zone     string   `json:"zone,omitempty"`
	Version  string   `json:"version,omitempty"` // of its build of this library, for people
	Rules    uint32   `json:"rules"`             // highest rules version that this build knows
	Settings settings `json:"settings"`
	Guest    bool     `json:"guest,omitempty"`    // it only takes locks: no instance of the service, it can have no replica and has no settings
	For      string   `json:"for,omitempty"`      // the name in its capability, which the leader has written; empty for a full instance
	Tier     string   `json:"tier,omitempty"`     // of its certificate, if that is derived; the leader has written it
	Own      bool     `json:"own,omitempty"`      // one of several sessions: its user has opened it by NewSession
	Founders []string `json:"founders,omitempty"` // the names behind Settings.Founders: only a founder lists them, and only if they fit
	Since    int64    `json:"since,omitempty"`    // when the instance became a member of its group, in Unix milliseconds of its own clock

	leaving bool // its session says so; of the reader, not of the record
}

// settings are what an instance was told about its group, in a form that is small and can be compared: two that are equal name the same.
type settings struct {
	Replicas     int           `json:"replicas,omitempty"`
	Founders     string        `json:"founders,omitempty"` // fingerprint of the names, which could exceed what a record may hold
	FounderCount int           `json:"founder_count,omitempty"`
	Voters       int           `json:"voters"`
	SessionTTL   time.Duration `json:"session_ttl_ns"`
	Grace        time.Duration `json:"grace_ns"` // 0: none
	SessionBytes int64         `json:"session_bytes"`
	GroupBytes   int64         `json:"group_bytes"`
}

func (n *Node) record() []byte {
	instance := n.instance().String()
	if n.isMember() {
		instance = "" // its session is no registration
	}
	group := n.config.group()
	r := record{
		Instance: instance, Name: n.config.Name, Addr: n.reach(), Zone: n.config.Zone, Version: version, Rules: lockfsm.RulesVersion,
		Settings: group.named(), Since: n.env.wall().UnixMilli(),
	}
	if slices.Contains(group.Founders, r.Name) {
		r.Founders = group.Founders
	}
	b, err := json.Marshal(r)
	if err == nil && len(b) > lockfsm.MaxRecordBytes/2 { // the rest is for what stamp or a later build adds
		r.Founders = nil
		b, err = json.Marshal(r)
	}
	if err != nil { // strings and numbers always marshal
		return nil
	}
	return b
}

// ownRecord is what is said in a session of the user's own. It has no instance, since it is no registration.
func (n *Node) ownRecord() []byte {
	r := decodeRecord(n.record())
	r.Instance, r.Own, r.Founders = "", true, nil
	b, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return b
}

// decodeRecord returns the zero record for one that cannot be read, of another build or another library. It supports no rules and agrees
// to no settings.
func decodeRecord(b []byte) record {
	var r record
	if json.Unmarshal(b, &r) != nil {
		return record{}
	}
	return r
}

// id returns the instance's ID, zero if the record has none.
func (r record) id() nodeid.ID {
	id, err := nodeid.Parse(r.Instance)
	if err != nil {
		return nodeid.ID{}
	}
	return id
}

// founders returns the names of the founders that the record lists, ascending. It returns nil if they
// are not those of its settings, or no configuration may have them.
func (r *record) founders() []string {
	var wrong complaints
	wrong.checkFounders(r.Founders)
	listed := groupSettings{Founders: unique(r.Founders)}
	is := listed.named()
	if len(r.Founders) == 0 || len(wrong) > 0 || is.Founders != r.Settings.Founders || is.FounderCount != r.Settings.FounderCount {
		return nil
	}
	return listed.Founders
}

// vouch implements session's Vouch: what the record of a new session says of the instance must be what its connection proves. A session
// of the user's own, or of another program, names no instance.
func (n *Node) vouch(from session.Peer, b []byte) (hash [32]byte, ok bool) {
	is := transport.Identity{Instance: n.instance(), Addr: n.address}
	if from != is.Instance {
		if is, ok = n.port.Met(from); !ok {
			return hash, false
		}
	}
	hash = is.Peer.Capability.Hash()
	r := decodeRecord(b)
	if r.Instance != "" && r.id() != from || r.Addr != "" && r.Addr != is.Addr {
		return hash, false
	}
	if r.Instance != "" && is.Peer.Capability != nil {
		return hash, false
	}
	return hash, true
}

// stamp writes into the record with which a peer opens a session what its certificate says, which is not the peer's to say.
func stamp(rights *capability.Capability, b []byte) []byte {
	r := decodeRecord(b)
	r.Guest, r.For, r.Tier = true, rights.For(), capability.TierOf(rights).String()
	stamped, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return stamped
}

// holderName tells people who holds a lock, by what that instance said of itself, which is escaped.
func holderName(b []byte, session lockfsm.SessionID) string {
	r := decodeRecord(b)
	if r.For != "" {
		return plain.Text(r.Name + " (for " + r.For + ")")
	}
	if r.Name != "" {
		return plain.Text(r.Name)
	}
	return fmt.Sprintf("session %d", session)
}
