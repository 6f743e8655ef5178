package replica

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// Settings are the settings of a whole group. The state machine stores their JSON without decoding
// it. A build that adds a field must not write the field before a new rules version is in force,
// because an older leader would remove it.
type Settings struct {
	Replicas   int           `json:"replicas,omitempty"`
	Founders   []string      `json:"founders,omitempty"` // ascending, without duplicates
	Voters     int           `json:"voters"`
	SessionTTL time.Duration `json:"session_ttl_ns"`
	Grace      time.Duration `json:"grace_ns"` // 0 means none
	// Budgets in bytes. A new group has the default budgets until all instances have the same
	// configured budgets.
	SessionBytes int64 `json:"session_bytes"`
	GroupBytes   int64 `json:"group_bytes"`
}

// FoundedWith returns the settings with which a group was founded.
func FoundedWith(s founding.Settings) Settings {
	limits := lockfsm.DefaultLimits()
	return Settings{
		Replicas: s.Replicas, Founders: Unique(s.Founders), Voters: s.Voters, SessionTTL: s.SessionTTL, Grace: s.Grace,
		SessionBytes: int64(limits.SessionBytes), GroupBytes: int64(limits.GroupBytes),
	}
}

// Founding converts the settings to those of package founding.
func (g Settings) Founding(solo bool) founding.Settings {
	return founding.Settings{Replicas: g.Replicas, Founders: g.Founders, Voters: g.Voters, SessionTTL: g.SessionTTL,
		Grace: g.Grace, Solo: solo}
}

// Budgets returns the budgets that the leader proposes.
func (g Settings) Budgets() session.Budgets {
	return session.Budgets{Session: uint64(g.SessionBytes), Group: uint64(g.GroupBytes)}
}

// Unique returns the names in ascending order without duplicates.
func Unique(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// Named converts the settings to those of an instance's record.
func (g Settings) Named() Named {
	s := Named{Replicas: g.Replicas, FounderCount: len(g.Founders), Voters: g.Voters, SessionTTL: g.SessionTTL,
		Grace: g.Grace}
	s.SessionBytes, s.GroupBytes = g.SessionBytes, g.GroupBytes
	if len(g.Founders) > 0 {
		sum := sha256.Sum256([]byte(strings.Join(g.Founders, "\x00")))
		s.Founders = hex.EncodeToString(sum[:8])
	}
	return s
}

// Encode returns the JSON for the state machine, or nil if it exceeds lockfsm.MaxSettingsBytes.
func (g Settings) Encode() []byte {
	b, err := json.Marshal(g)
	// err is always nil, because strings and numbers can be encoded
	if err != nil || len(b) > lockfsm.MaxSettingsBytes {
		return nil
	}
	return b
}

func decodeSettings(b []byte) (Settings, error) {
	var g Settings
	if err := json.Unmarshal(b, &g); err != nil {
		return Settings{}, fmt.Errorf("replica: the group's settings cannot be read: %w", err)
	}
	return g, nil
}

// InForce returns the settings that a group has adopted, or with which it was founded. An error
// means that the state machine has no settings.
func InForce(c lockfsm.Charter) (Settings, error) {
	g, err := decodeSettings(c.Settings)
	g.SessionTTL = c.SessionTTL // the machine uses the charter's TTL and budgets
	g.SessionBytes, g.GroupBytes = int64(c.Limits.SessionBytes), int64(c.Limits.GroupBytes)
	return g, err
}
