package cluster

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mortise-lock/mortise/cluster/discovery"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Config configures an instance. Start copies it.
type Config struct {
	Name      string     // 1 to 128 bytes
	Label     string     // 1 to 255 bytes; another label means another cluster
	Zone      string     // at most 128 bytes; may be empty
	Advertise string     // host:port at which the others reach this instance
	Key       nodeid.Key // that of Begins, or a new key if that is zero
	// Join lists where to find other instances. discovery.Check defines the entries. The list may
	// include this instance's own address. Settings.Solo must be true if and only if both Join and
	// JoinFunc are empty.
	Join     []string
	Settings founding.Settings
	Rules    uint32 // newest version of the lock rules that this build supports; zero means 1

	// Member is set for an instance with a member's secret. This instance asks others but is never
	// asked. It neither gossips nor founds nor votes.
	Member bool

	Net Net // may be nil if Settings.Solo
	// Gossip starts gossip over Net. It may be nil for an instance that does not gossip.
	Gossip  func(gossip.Config, gossip.Meta) (gossip.Gossip, error)
	Host    Host    // a DurableHost if Records is set
	Records Records // survives a restart; nil means memory mode
	// Site identifies the lock that excludes a second process from Records, at most 128 bytes. Starts
	// with the same Site cannot overlap. Empty means that nothing is known.
	Site  string
	Clock clock.Clock
	Wall  func() time.Time // nil means time.Now
	// Resolve returns all addresses of a name, without port, and none if the name does not exist.
	// If Resolve is nil, the system's resolver is used.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// Services returns the host:port of every SRV record of a name, and none if the name does not
	// exist. If Services is nil, the system's resolver is used.
	Services func(ctx context.Context, name string) ([]string, error)
	// JoinFunc returns further addresses, host:port each. It is called repeatedly on its own
	// goroutine, never concurrently. It must return when ctx ends, which happens after two seconds
	// or when Close is called. JoinFunc may be nil.
	JoinFunc func(ctx context.Context) ([]string, error)
	// Kubernetes is set if this process runs in a pod. It changes only texts.
	Kubernetes bool
	// Awaited is called with a text that says what this instance waits for, and returns the text to
	// log instead. It is called on the owner goroutine and must not block. If Awaited is nil, the
	// original text is logged.
	Awaited func(waiting string) string
	Random  func([]byte) // fills with unpredictable bytes; nil means crypto/rand
	Logger  *slog.Logger // nil means slog.Default()
}

func (cfg *Config) gossips() bool {
	founds := cfg.Settings.Founds(cfg.Name)
	return !cfg.Settings.Solo && !cfg.Member && founds
}

func (cfg Config) withDefaults() Config {
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = func(b []byte) { crand.Read(b) } // ends the program instead of failing
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	cfg.Rules = max(cfg.Rules, 1)
	cfg.Join = append([]string(nil), cfg.Join...)
	return cfg
}

// This line compiles only if every address that Join may name fits into gossip's metadata.
const _ = uint(gossip.MaxAddrBytes - discovery.MaxAddrBytes)

func (cfg *Config) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("cluster: "+format, args...)) }
	if n := len(cfg.Name); n < 1 || n > gossip.MaxNameBytes {
		wrong("Name has %d bytes, want 1 to %d", n, gossip.MaxNameBytes)
	}
	if n := len(cfg.Label); n < 1 || n > 255 {
		wrong("Label has %d bytes, want 1 to 255", n)
	}
	if n := len(cfg.Zone); n > gossip.MaxZoneBytes {
		wrong("Zone has %d bytes, want at most %d", n, gossip.MaxZoneBytes)
	}
	if err := discovery.CheckAddr(cfg.Advertise); err != nil {
		wrong("Advertise: %v", err)
	}
	if cfg.Key.ID().IsZero() {
		wrong("Key is not set, want a new one")
	}
	for _, j := range cfg.Join {
		if err := discovery.Check(j); err != nil {
			wrong("Join: %v", err)
		}
	}
	s := cfg.Settings
	if s.Solo != (len(cfg.Join) == 0 && cfg.JoinFunc == nil) {
		wrong("Settings.Solo is %v with %d entries in Join: it must be true if and only if both Join and JoinFunc are empty",
			s.Solo, len(cfg.Join))
	}
	if !s.Solo && (s.Replicas > 0) == (len(s.Founders) > 0) {
		wrong("Settings need exactly one of Replicas and Founders")
	}
	if s.Voters < 1 || s.Voters > 7 || s.Voters%2 == 0 {
		wrong("Settings.Voters is %d, want an odd number from 1 to 7", s.Voters)
	}
	if s.SessionTTL <= 0 || s.Grace < 0 {
		wrong("Settings need a SessionTTL above zero and a Grace that is not negative")
	}
	if (cfg.Net == nil && !s.Solo) || cfg.Host == nil || cfg.Clock == nil {
		wrong("Net, Host and Clock must be set")
	}
	if cfg.Gossip == nil && cfg.gossips() {
		wrong("Gossip must be set for an instance that gossips")
	}
	if _, durable := cfg.Host.(DurableHost); cfg.Records != nil && !durable {
		wrong("Host must be a DurableHost if Records is set")
	}
	return errors.Join(errs...)
}
