package mortise

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// record is what an instance says of itself when it opens a session. The state machine keeps it unread; others decode it to tell
// people who holds a lock. It is JSON, so that a later version can add to it.
type record struct {
	Instance string   `json:"instance"`
	Name     string   `json:"name"`
	Addr     string   `json:"addr"`
	Zone     string   `json:"zone,omitempty"`
	Rules    uint32   `json:"rules"` // highest rules version that this build knows
	Settings settings `json:"settings"`
}

type settings struct {
	Replicas   int           `json:"replicas,omitempty"`
	Founders   int           `json:"founders,omitempty"` // how many: the names could exceed what a record may hold
	Voters     int           `json:"voters"`
	SessionTTL time.Duration `json:"session_ttl_ns"`
	Grace      time.Duration `json:"grace_ns"`
}

func (n *Node) record() []byte {
	b, err := json.Marshal(record{
		Instance: instanceText(n.instance.Load()), Name: n.config.Name, Addr: n.address, Zone: n.config.Zone, Rules: lockfsm.RulesVersion,
		Settings: settings{
			Replicas: n.config.Replicas, Founders: len(n.config.Founders), Voters: n.config.Voters,
			SessionTTL: n.config.SessionTTL, Grace: n.config.Grace,
		},
	})
	if err != nil { // strings and numbers always marshal
		return nil
	}
	return b
}

// holderName tells people who holds a lock, by what that instance said of itself.
func holderName(b []byte, session lockfsm.SessionID) string {
	var r record
	if json.Unmarshal(b, &r) != nil || r.Name == "" {
		return fmt.Sprintf("session %d", session)
	}
	return r.Name
}

func instanceText(instance uint64) string { return fmt.Sprintf("%016x", instance) }
