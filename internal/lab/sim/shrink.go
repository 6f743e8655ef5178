package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/shrink"
)

// Shrunk is a failed run with as few faults as were found.
type Shrunk struct {
	*Report          // of a run with Config.Verbose
	Faults  []string // what has to happen for the failure
	Minimal bool     // without any one of Faults the run passes
	Runs    int
}

// Shrink shrinks a failed run of run, which must be repeatable. First it shortens the run. Then it
// leaves out faults, and the kinds of requests and of operators' actions of which a seed has some.
// At last it takes apart what happens at single messages, turns and saves. It makes at most about
// the given number of runs.
func Shrink(failed *Report, runs int, run func(Config) *Report) *Shrunk {
	s := &shrinking{run: run, left: runs, cfg: failed.Config}
	s.cfg.Verbose, s.cfg.Replay = false, nil
	s.shorten()
	s.whole()
	minimal := s.reduce()
	if s.takeApart() {
		minimal = s.reduce()
	}
	s.cfg = s.with(s.parts)
	s.cfg.Verbose = true
	r := s.run(s.cfg)
	out := &Shrunk{Report: r, Minimal: minimal && r.Fault != "", Runs: s.runs}
	for _, p := range s.parts {
		if p.strike >= 0 {
			out.Faults = append(out.Faults, r.Strikes[p.strike].name(p.strike))
		} else {
			out.Faults = append(out.Faults, p.name)
		}
	}
	return out
}

type shrinking struct {
	run        func(Config) *Report
	left, runs int
	cfg        Config // of the shortest run
	failed     *Report
	parts      []part
}

// part is what a run can go without.
type part struct {
	name       string
	strike     int // its number, or -1
	chance     chance
	occurrence int // of chance, or -1 for all of them
	without    func(*Config)
}

func (s *shrinking) try(cfg Config) bool {
	s.left--
	s.runs++
	r := s.run(cfg)
	if r.Fault != "" {
		s.failed = r
	}
	return r.Fault != ""
}

// shorten halves the time of the faults for as long as the run fails.
func (s *shrinking) shorten() {
	s.try(s.cfg)
	for s.left > 0 {
		cfg := s.cfg
		if cfg.Virtual /= 2; cfg.Virtual < 10*time.Second || !s.try(cfg) {
			return
		}
		s.cfg = cfg
	}
}

// whole collects the parts of the run. Parts that can be left out easily come last.
func (s *shrinking) whole() {
	for c := range chances {
		if s.failed.befallen[c] > 0 {
			s.parts = append(s.parts, part{name: fmt.Sprintf("%s, %d times", chanceNames[c], s.failed.befallen[c]),
				strike: -1, chance: c, occurrence: -1})
		}
	}
	s.cfg.Replay = &Replay{strikes: s.failed.Strikes}
	for i := range s.failed.Strikes {
		s.parts = append(s.parts, part{strike: i})
	}
	for _, k := range kinds() {
		if k.drawn(&s.cfg) {
			s.parts = append(s.parts, part{name: k.name, strike: -1, without: k.without})
		}
	}
}

// reduce leaves out parts, and reports whether none of the others can be left out.
func (s *shrinking) reduce() (minimal bool) {
	on, minimal := shrink.Minimal(len(s.parts), s.left, func(on []int) bool { return s.try(s.with(s.some(on))) })
	s.parts = s.some(on)
	return minimal
}

func (s *shrinking) some(on []int) (parts []part) {
	for _, i := range on {
		parts = append(parts, s.parts[i])
	}
	return parts
}

// takeApart replaces each chance that is left by its occurrences.
func (s *shrinking) takeApart() (any bool) {
	if s.left <= 0 || !s.try(s.with(s.parts)) {
		return false
	}
	var all []part
	for _, p := range s.parts {
		if p.strike >= 0 || p.without != nil {
			all = append(all, p)
			continue
		}
		any = true
		for i := range s.failed.befallen[p.chance] {
			all = append(all, part{name: fmt.Sprintf("%s (occurrence %d)", chanceNames[p.chance], i), strike: -1,
				chance: p.chance, occurrence: i})
		}
	}
	s.parts = all
	return any
}

// with returns the configuration of a run that has these parts only.
func (s *shrinking) with(parts []part) Config {
	cfg := s.cfg
	r := &Replay{strikes: s.cfg.Replay.strikes, off: map[int]bool{}}
	for i := range r.strikes {
		r.off[i] = true
	}
	for c := range r.silent {
		r.silent[c] = true
	}
	absent := map[string]kind{}
	for _, k := range kinds() {
		absent[k.name] = k
	}
	for _, p := range parts {
		switch {
		case p.strike >= 0:
			delete(r.off, p.strike)
		case p.without != nil:
			delete(absent, p.name)
		case p.occurrence < 0:
			r.silent[p.chance] = false
		default:
			if r.silent[p.chance] = false; r.only[p.chance] == nil {
				r.only[p.chance] = map[int]bool{}
			}
			r.only[p.chance][p.occurrence] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(absent)) {
		absent[name].without(&cfg)
	}
	cfg.Replay = r
	return cfg
}

// kind is something that only some seeds have.
type kind struct {
	name    string
	drawn   func(*Config) bool
	without func(*Config)
}

func kinds() []kind {
	share := func(name string, of func(*Config) *float64) kind {
		return kind{name, func(c *Config) bool { return *of(c) > 0 }, func(c *Config) { *of(c) = 0 }}
	}
	return []kind{
		share("other kinds of locks", func(c *Config) *float64 { return &c.Kinds }),
		share("nested calls", func(c *Config) *float64 { return &c.Nest }),
		{"sessions of programs", func(c *Config) bool { return c.Own > 0 }, func(c *Config) { c.Own = 0 }},
		share("jobs", func(c *Config) *float64 { return &c.Jobs }),
		share("options", func(c *Config) *float64 { return &c.Options }),
		share("sticky calls", func(c *Config) *float64 { return &c.Sticky }),
		share("readers", func(c *Config) *float64 { return &c.Readers }),
		share("downgrades", func(c *Config) *float64 { return &c.Downgrade }),
		share("paths", func(c *Config) *float64 { return &c.Paths }),
		share("upgrades", func(c *Config) *float64 { return &c.Upgrades }),
		share("graces of holds", func(c *Config) *float64 { return &c.Doubts }),
		share("calls with Try", func(c *Config) *float64 { return &c.Try }),
		share("cancelled calls", func(c *Config) *float64 { return &c.Cancel }),
		share("long holds", func(c *Config) *float64 { return &c.Long }),
		share("drift of clocks", func(c *Config) *float64 { return &c.Drift }),
		{"actions of operators", func(c *Config) bool { return c.Steps > 0 }, func(c *Config) { c.Steps = 0 }},
		{"changed settings", func(c *Config) bool { return c.Retold > 0 }, func(c *Config) { c.Retold = 0 }},
		{"an insider", func(c *Config) bool { return c.Insider }, func(c *Config) { c.Insider = false }},
	}
}
