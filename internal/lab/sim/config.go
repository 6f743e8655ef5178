package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// Config defines one run. Draw returns the Config of a seed.
type Config struct {
	Seed    uint64
	Virtual time.Duration // virtual time for which faults are caused
	Heal    bool          // at the end all faults stop, and progress is required
	// Quiet means that machines only stop and start: no links are cut, and nothing is late or slow.
	// No new group may be founded while the old group has a majority.
	Quiet    bool
	Machines int
	Late     int // how many of the last machines start later; only with Founders
	Zones    int
	Voters   int
	Founders []string // names; if empty, the setting Replicas is the number of machines
	JoinAll  bool     // the setting Join names all machines, not only the founders
	Durable  bool
	RunDirs  bool // each machine has a run directory, which a power failure empties
	TTL      time.Duration
	Grace    time.Duration // zero means none
	Drift    float64       // largest relative deviation of a boot-time clock
	Latency  time.Duration

	SnapshotBytes int
	KeepEntries   int
	// Step is the number of sessions that a leader adds, and whose deadlines it checks, in one
	// turn. Zero means the number that a real leader uses.
	Step int

	Limits lockfsm.Limits
	// Searched is the number of entries that a search for a deadlock in an Acquire visits. The leader
	// searches on. Zero means the numbers of a real group.
	Searched int

	Callers int // in each process
	Own     int // how many sessions the program of each process opens when it starts
	Keys    int
	Think   time.Duration // longest time between two calls of a caller
	Hold    time.Duration // limit on the duration of most holds; see Long
	Long    float64       // share of locks that are held for up to three TTLs
	Try     float64
	Cancel  float64
	Kinds   float64 // share of calls that are not for a mutex
	Nest    float64 // share of holders that make another call under their lock
	Jobs    float64 // share of calls that begin a job under three limits; see drawJob
	Options float64 // share of calls with a limit on the hold, an expiry delay or a notice

	Sticky   float64       // share of suitable calls that ask for a pass
	StayIdle time.Duration // a stay that no caller uses is given back after this time
	// StayTokens is the number of reserved tokens of a stay that a process uses. Zero means all.
	StayTokens lockfsm.Token
	Readers    float64 // share of calls that are shared, in addition to those of Kinds

	Downgrade float64 // share of suitable holders that make their exclusive lock shared
	Paths     float64 // share of calls that lock a node of a tree
	Upgrades  float64 // share of calls for an upgradable lock
	Mixed     float64 // share of calls for several keys and trees with different modes
	Crossed   float64 // share of upgrades under another lock, which is taken under the upgradable one

	// Doubts is the share of calls with a grace. Their holds are in doubt at the end of the lease.
	Doubts float64

	Steps time.Duration // average time between two operator steps of one kind; zero means none

	// Retold is the average time between two changes of the settings with which instances start.
	// Zero means none.
	Retold time.Duration

	Trouble Trouble
	Insider bool // a process that has the secret sends false messages
	Verbose bool
	// RaftTrace returns the receiver of raft's trace points for a replica of a group. Nil means none.
	RaftTrace func(group uint64) raftlog.RaftTracer
	// Replay leaves out faults of an earlier run of the same Config. Nil means that faults are drawn.
	Replay *Replay
}

// Trouble defines the faults of a run. The chances are probabilities between 0 and 1. Zero means
// never.
type Trouble struct {
	Every    time.Duration // average time between two faults of the nemesis
	Jitter   float64       // chance that a packet is late by up to three TTLs
	Repeat   float64
	Drop     float64
	Sluggish float64 // chance that a goroutine is scheduled late
	Brittle  float64 // chance that the power fails around a save
	SlowDisk float64
	HungSnap float64 // chance that a disk needs up to hungFor to take a snapshot
	Claim    float64 // chance that the claim of a start comes late or again
	Wipes    int     // largest number of disk faults; each wipes one disk, or a majority of the disks
}

// Draw returns the Config of a seed. It depends only on the seed and on the code of this function.
func Draw(seed uint64) Config {
	r := rand.New(rand.NewPCG(seed, 0x64726177))
	pick := func(d ...time.Duration) time.Duration { return d[r.IntN(len(d))] }
	share := func(p ...float64) float64 { return p[r.IntN(len(p))] }
	c := Config{
		Seed: seed, Virtual: 10 * time.Minute, Machines: 3 + r.IntN(5), Zones: 1 + r.IntN(3), Voters: 3,
		Durable: r.IntN(2) == 0,
		TTL:     pick(time.Second, 2*time.Second, 2*time.Second, 5*time.Second), Drift: share(0, 0.005, 0.009),
		Latency:       pick(50*time.Microsecond, 500*time.Microsecond, 5*time.Millisecond),
		SnapshotBytes: []int{2 << 10, 16 << 10, 1 << 20}[r.IntN(3)], KeepEntries: []int{0, 50, 1000}[r.IntN(3)],
		Callers: 1 + r.IntN(3), Keys: 1 + r.IntN(4),
		Think: pick(500*time.Millisecond, 2*time.Second, 5*time.Second),
		Hold:  pick(5*time.Millisecond, 100*time.Millisecond),
		Long:  share(0.02, 0.1, 0.4), Try: share(0, 0.2), Cancel: share(0, 0.1, 0.3),
	}
	c.Limits = lockfsm.DefaultLimits()
	if r.IntN(4) == 0 {
		c.Limits.WaitersPerLock, c.Limits.EntriesPerSession = 2, 4
	}
	c.Heal = r.IntN(2) == 0
	c.Grace = c.TTL
	if c.Durable && r.IntN(3) == 0 {
		c.Grace = 0 // valid only if no earlier group can exist
	}
	if r.IntN(4) == 0 && c.Machines >= 5 {
		c.Voters = 5
	}
	if r.IntN(2) == 0 {
		for i := range min(c.Voters+r.IntN(3), c.Machines) {
			c.Founders = append(c.Founders, fmt.Sprintf("n%d", i))
		}
		c.Late = r.IntN(c.Machines - len(c.Founders) + 1)
		c.JoinAll = seed%3 == 0 // by the seed
	}
	c.Trouble = Trouble{
		Every: pick(2*time.Second, 5*time.Second, 15*time.Second, 60*time.Second), Jitter: share(0, 0, 0.0005, 0.005),
		Repeat: share(0, 0.01),
		Drop:   share(0, 0.005, 0.03), Sluggish: share(0, 0, 0.01), SlowDisk: share(0, 0.02),
	}
	if c.Durable {
		c.Trouble.Brittle, c.Trouble.Wipes = share(0, 0.02, 0.1), r.IntN(4)
	}
	if c.Quiet = r.IntN(5) == 0; c.Quiet {
		c.Trouble = Trouble{Every: pick(5*time.Second, 15*time.Second, 60*time.Second)}
	} else if c.Durable {
		c.Trouble.HungSnap = drawHungSnap(seed)
	}
	// The following settings depend directly on the seed, not on r. So half of the runs of each
	// campaign have only mutexes.
	if seed/2%2 == 1 {
		c.Kinds, c.Nest = share(0.3, 0.6), share(0.1, 0.3, 0.6)
	}
	if (seed+1)/2%2 == 0 { // four consecutive seeds have all combinations of Kinds and Options
		c.Options, c.Steps = share(0.2, 0.6), pick(time.Second, 3*time.Second, 10*time.Second)
	}
	if seed/8%2 == 0 { // depends on the seed
		c.Retold = pick(20*time.Second, 2*time.Minute)
	}
	c.drawSticky(seed)
	c.Downgrade, c.Paths, c.Doubts = drawDowngrades(seed), drawPaths(seed), drawDoubts(seed)
	c.Upgrades, c.Searched, c.Jobs = drawUpgrades(seed), drawSearched(seed), drawJobs(seed)
	c.Mixed, c.Crossed = drawMixed(seed)
	c.Own = drawOwn(seed)
	c.Step = int(seed % 5) // depends on the seed
	c.RunDirs = !c.Durable && seed%3 == 1
	c.Trouble.Claim = c.drawClaim(seed)
	// An insider occurs with every combination of Kinds and Options.
	c.Insider = seed/4%4 == 1
	return c
}

// drawDowngrades has its own random numbers, so that downgrades occur with all other settings.
func drawDowngrades(seed uint64) float64 {
	k := rand.New(rand.NewPCG(seed, 0x646f776e))
	return float64(k.IntN(2)) * (0.1 + 0.4*k.Float64())
}

// drawPaths has its own random numbers, too.
func drawPaths(seed uint64) float64 {
	k := rand.New(rand.NewPCG(seed, 0x70617468))
	return float64(k.IntN(3)/2) * (0.2 + 0.5*k.Float64())
}

// drawUpgrades has its own random numbers, too.
func drawUpgrades(seed uint64) float64 {
	k := rand.New(rand.NewPCG(seed, 0x75706772))
	return float64(k.IntN(3)/2) * (0.2 + 0.5*k.Float64())
}

// drawMixed has its own random numbers, too.
func drawMixed(seed uint64) (mixed, crossed float64) {
	k := rand.New(rand.NewPCG(seed, 0x6d69786564))
	return float64(k.IntN(3)/2) * (0.2 + 0.5*k.Float64()), float64(k.IntN(2)) * (0.3 + 0.5*k.Float64())
}

// drawHungSnap has its own random numbers, too.
func drawHungSnap(seed uint64) float64 {
	k := rand.New(rand.NewPCG(seed, 0x68756e67))
	return float64(k.IntN(2)) * 0.05
}

// drawClaim has its own random numbers, too. A quiet run has no late claims.
func (c *Config) drawClaim(seed uint64) float64 {
	if c.Quiet {
		return 0
	}
	k := rand.New(rand.NewPCG(seed, 0x636c61696d))
	return float64(k.IntN(2)) * 0.3
}

// drawOwn has its own random numbers, too. In half of the runs programs open sessions.
func drawOwn(seed uint64) int {
	k := rand.New(rand.NewPCG(seed, 0x6f776e))
	return k.IntN(2) * (1 + k.IntN(2))
}

// drawSearched has its own random numbers, too.
func drawSearched(seed uint64) int {
	k := rand.New(rand.NewPCG(seed, 0x6c6f6f6b))
	return k.IntN(2) * (1 + k.IntN(4))
}

// drawSticky draws from random numbers of its own, so that stickiness occurs with all other
// settings.
func (c *Config) drawSticky(seed uint64) {
	k := rand.New(rand.NewPCG(seed, 0x7374617adf))
	if k.IntN(2) != 0 {
		return
	}
	c.Sticky = 0.5 + 0.5*k.Float64()
	c.Callers += k.IntN(3)
	c.StayIdle = []time.Duration{time.Second, 20 * time.Second}[k.IntN(2)]
	c.StayTokens, c.Readers = []lockfsm.Token{0, 0, 1, 4}[k.IntN(4)], []float64{0, 0, 0.5}[k.IntN(3)]
}

// DrawJobs returns the Config of a run in which all 64 callers work under three nested limits.
func DrawJobs(seed uint64) Config {
	c := Draw(seed)
	c.Jobs, c.Virtual, c.Heal = 1, time.Minute, true
	c.Machines, c.Voters, c.Founders, c.Late, c.Callers = 4, 3, nil, 0, 16
	c.TTL, c.Grace = time.Second, min(c.Grace, time.Second)
	c.Limits, c.Searched = lockfsm.DefaultLimits(), int(seed%2)
	return c
}

// drawJobs gives jobs to a third of the seeds.
func drawJobs(seed uint64) float64 {
	if seed%3 != 1 {
		return 0
	}
	return 0.2 + 0.6*rand.New(rand.NewPCG(seed, 0x6a6f6273)).Float64()
}

// drawDoubts has its own random numbers. Three quarters of the seeds have no holds with a grace.
func drawDoubts(seed uint64) float64 {
	if seed%64 < 48 {
		return 0
	}
	return 0.2 + 0.6*rand.New(rand.NewPCG(seed, 0x646f7562)).Float64()
}

func (c *Config) settings() founding.Settings {
	s := founding.Settings{Founders: c.Founders, Voters: c.Voters, SessionTTL: c.TTL, Grace: c.Grace}
	if len(c.Founders) == 0 {
		s.Replicas = c.Machines
	}
	return s
}

// slack is the largest difference between two wall clocks.
func (c *Config) slack() time.Duration {
	if c.Grace > 0 {
		return c.Grace / 2
	}
	return 5 * time.Second
}

func (c *Config) String() string {
	kind, disk := fmt.Sprintf("replicas %d", c.Machines), "memory"
	if len(c.Founders) > 0 {
		kind = fmt.Sprintf("founders %d", len(c.Founders))
	}
	if c.Durable {
		disk = "durable"
	} else if c.RunDirs {
		disk = "memory with run directories"
	}
	return fmt.Sprintf("seed %d: %d machines, %d voters, %s, %s, ttl %v, grace %v, drift %.1f%%, latency %v, "+
		"trouble every %v, heal %v, quiet %v, kinds %v, nested %v, jobs %.2f, wishes %v, "+
		"sticky %.2f, own sessions %d, steps every %v, insider %v",
		c.Seed, c.Machines, c.Voters, kind, disk, c.TTL, c.Grace, c.Drift*100, c.Latency, c.Trouble.Every, c.Heal,
		c.Quiet, c.Kinds, c.Nest, c.Jobs, c.Options, c.Sticky, c.Own, c.Steps, c.Insider)
}

// silence is added to some time limits if the run has no founders and no disks. A voter that
// crashed without a close frame and restarted at another address counts as ended only after ten
// minutes.
func (c *Config) silence() time.Duration {
	if c.Durable || len(c.Founders) > 0 {
		return 0
	}
	return 12 * time.Minute
}
