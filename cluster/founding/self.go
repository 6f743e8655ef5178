package founding

import "github.com/mortise-lock/mortise/internal/nodeid"

// self is what an incarnation says of itself. Nothing changes it before the next incarnation.
type self struct {
	instance nodeid.ID
	name     string
	addr     string
	settings Settings
	rules    uint32
	life     uint64
	boot     uint64
}

// again returns the next incarnation of the same process.
func (s *self) again(instance nodeid.ID, settings Settings) self {
	return self{
		instance: instance, name: s.name, addr: s.addr, settings: settings, rules: s.rules, life: s.life,
	}
}

// resume gives an instance the ID that its directory holds.
func (s *self) resume(instance nodeid.ID) { s.instance = instance }

func (s *self) everyone() bool { return len(s.settings.Founders) == 0 }

func (s *self) joins() bool { return !s.everyone() && !s.settings.founds(s.name) }
