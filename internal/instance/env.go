package instance

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/outside"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

// env is the injected environment of an instance, which tests replace.
type env struct {
	listen  func(address string) (net.Listener, error)
	dial    func(ctx context.Context, address string) (net.Conn, error)
	resolve func(ctx context.Context, host string) ([]string, error)
	network networkInfo
	// The process runs in a pod.
	kubernetes bool
	clock      clock.Clock
	wall       func() time.Time
	random     func([]byte)
	files      storage.FS
	// records wraps the records of package cluster. Nil means no wrapper.
	records func(cluster.Records) cluster.Records
	// startLog starts the log of a replica.
	startLog func(raftlog.Config) (replicaLog, error)
	limits   lockfsm.Limits // limits of a group that this instance founds; must be equal on all founders
	rules    uint32         // newest version of the lock rules that this instance claims to know
	build    int64          // time of the commit of this program, in Unix seconds; zero means unknown
	// alter changes the entries that this instance's replica applies; nil means no change
	alter func(batch []byte) []byte
	// fingerprints of the versions of the rules, from version 1 on
	fingerprints []uint64
}

func envOf(w outside.World) env {
	e := realEnv()
	if w.Listen != nil {
		e.listen = w.Listen
	}
	if w.Dial != nil {
		e.dial = w.Dial
	}
	if w.Resolve != nil {
		e.resolve = w.Resolve
	}
	if w.Wall != nil {
		e.wall = w.Wall
	}
	if w.Random != nil {
		e.random = w.Random
	}
	e.kubernetes = e.kubernetes || w.Kubernetes
	e.clock, e.files, e.limits = cmp.Or(w.Clock, e.clock), cmp.Or(w.Files, e.files), cmp.Or(w.Limits, e.limits)
	e.build = cmp.Or(w.Build, e.build)
	e.records, e.alter, e.rules = w.Records, w.Alter, cmp.Or(w.Rules, lockfsm.RulesVersion)
	if e.fingerprints = w.Fingerprints; e.fingerprints == nil {
		e.fingerprints = lockfsm.Fingerprints()
	}
	e.dial = knowsItself(e.dial, e.network.interfaces)
	return e
}

// knowsItself returns dial with one change: the IPv6 loopback address, if this machine lacks it,
// refuses the connection, because nothing can listen there. In a container the name localhost can
// lead to ::1 although IPv6 is off. Other addresses without a route may belong to another machine.
func knowsItself(dial func(context.Context, string) (net.Conn, error),
	interfaces func() ([]networkInterface, error)) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := dial(ctx, address)
		if err == nil || !(errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.ENETUNREACH) ||
			errors.Is(err, syscall.EAFNOSUPPORT)) {
			return conn, err
		}
		to, parsed := netip.ParseAddrPort(address)
		if parsed != nil || to.Addr() != netip.IPv6Loopback() {
			return nil, err
		}
		all, unknown := interfaces()
		has := slices.ContainsFunc(all, func(i networkInterface) bool { return slices.Contains(i.addrs, to.Addr()) })
		if unknown != nil || has {
			return nil, err
		}
		return nil, fmt.Errorf("%w: this machine has no address %v: %w", syscall.ECONNREFUSED, to.Addr(), err)
	}
}

func realEnv() env {
	var dialer net.Dialer
	return env{
		listen: func(address string) (net.Listener, error) { return net.Listen("tcp", address) },
		dial: func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		},
		resolve: net.DefaultResolver.LookupHost,
		network: realNetworkInfo(),
		// Kubernetes sets this variable in each container.
		kubernetes: os.Getenv("KUBERNETES_SERVICE_HOST") != "",
		clock:      clock.Boot(),
		wall:       time.Now,
		// random never fails, because crypto/rand ends the process if it has no random bytes.
		random: func(b []byte) { _, _ = rand.Read(b) },
		files:  storage.OSFS(), startLog: startLog,
		limits: lockfsm.DefaultLimits(), build: builtFrom(debug.ReadBuildInfo()),
	}
}

// builtFrom returns the time of the commit from which the main module was built, in Unix seconds.
// Zero means unknown: go build records the commit only if it builds inside a repository.
func builtFrom(info *debug.BuildInfo, ok bool) int64 {
	if !ok {
		return 0
	}
	for _, s := range info.Settings {
		if s.Key != "vcs.time" {
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, s.Value); err == nil {
			return max(at.Unix(), 0)
		}
	}
	return 0
}
