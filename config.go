package mortise

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Config configures one instance. Start copies it. The zero value of a field means its default. The
// zero Config makes a node on its own, for a laptop or a test.
type Config struct {
	// Name identifies this instance in errors, logs, Status and Founders. If Founders is set, the
	// name must be unique in the cluster. 1 to 128 bytes. Default: the host name.
	Name string

	// Cluster is the name of the cluster. An instance communicates only with instances of the same
	// Cluster. 1 to 128 bytes. Default: "mortise".
	Cluster string

	// Bind is the address to listen on, host:port. One TCP port carries all traffic. Default:
	// ":7947" with Join or JoinFunc. Otherwise the default is "", and the node does not listen. An
	// address other than a loopback address needs Secret, TLS, TLSFiles or Insecure. Without
	// Secret, TLS and TLSFiles, a loopback address is open to every user of this machine.
	Bind string

	// Advertise is the address, host:port, at which others reach this instance. Default: Bind, if
	// Bind names a host. Otherwise the port is that of Bind, and the host is the first of these
	// addresses that exists: the source address of connections to the hosts of Join, the address of
	// this machine's host name, the source address of the default route, the machine's only
	// address. If none of them exists, Start fails.
	Advertise string

	// Join lists where other instances may be found. An entry has one of these forms:
	//
	//	host:port, dns:///host:port   all addresses of the host
	//	srv:///name                   all addresses of the hosts in its SRV records, with their ports
	//	file:///path                  a file with one host:port per line; # begins a comment
	//
	// A changed file is read again. To replace a file, rename a new file to its name, so that no
	// half-written list is used.
	//
	// Entries are resolved every second, or every ten seconds while there is a leader, with jitter.
	// The list may contain this instance. No group is founded while an entry cannot be resolved. An
	// entry may resolve to no address. On Kubernetes, set publishNotReadyAddresses on the headless
	// Service, because no pod is ready before the group is founded. With Join or JoinFunc, exactly
	// one of Replicas and Founders is required. Default: none, a node on its own.
	Join []string

	// JoinFunc returns further addresses, host:port each, from a discovery API of your own, with
	// Join or instead of it. One goroutine calls it every two seconds, or every ten seconds while
	// there is a leader. JoinFunc must return when its context ends, which happens after two
	// seconds or when the node closes. While its calls fail or panic, no group is founded, and the
	// addresses of its last successful call are used. Default: none.
	JoinFunc func(ctx context.Context) ([]string, error)

	// Replicas is the number of all instances that you run, for a fleet of fixed size. A group is
	// founded only when that many instances reach each other. 1 to 16; for a larger fleet use
	// Founders.
	Replicas int

	// Founders are the Names of the instances that found the group and vote in it, for example the
	// first three of a StatefulSet. Use Founders for a fleet whose size varies or exceeds 16. At
	// most 64 names.
	Founders []string

	// Voters is how many instances hold the replicated state: 1, 3, 5 or 7. The group survives the
	// loss of a minority of them. Default: 3.
	Voters int

	// Zone names the failure domain of this instance. Voters are spread over zones. At most 64
	// bytes. Default: "".
	Zone string

	// Dir is a directory for this instance's copy of the replicated state. A voter writes each
	// change to Dir before it acknowledges the change. The group then survives a crash of a
	// majority of its voters, and continues when they run again. Each instance needs its own
	// directory, on a disk of its own machine. Default: "", in memory. Without Dir, a voter that
	// restarts is a new instance, which takes over the vote of the old one. If a process ends without
	// Leave and starts again with Dir, the group frees its locks at once, on Linux and unless the
	// machine was started anew. Start resolves relative paths, so the process may change its working
	// directory afterwards.
	Dir string

	// RunDir is a directory, for an instance without Dir, that outlives the process, and need not
	// outlive the machine: /run/orders, or an emptyDir. A start with the RunDir of a process that was
	// killed frees the locks of that process at once, on Linux and on a local file system. It contains
	// a lock file and the private key of this instance, and costs nothing while locks are used. Each
	// instance needs its own. Default: "", none: the locks stay taken for SessionTTL. A relative path
	// is resolved as in Dir.
	RunDir string

	// DirFreeBytes is the free space for Dir below which this instance warns in the log, in Status
	// and in Health. It works on Linux only. Default: 64 MiB. Negative means no warning.
	DirFreeBytes int64

	// SessionTTL is how long the locks of an instance stay held after the last renewal of its
	// lease. 1 s to 10 min. Default: 10 s. It must be equal on all instances that found the group.
	// An instance that joins later uses the group's value if its own is higher.
	SessionTTL time.Duration

	// Grace is how long a newly founded group grants nothing, so that every hold of an earlier
	// group has ended before the first grant. At least SessionTTL, at most 1 h. Default: 0, which
	// means SessionTTL. Negative means no grace, for tests and first deployments.
	Grace time.Duration

	// MaxSessionBytes bounds the memory of one voter for the locks, waiters and values of one
	// session (the node's, or one of [Node.NewSession]). Each request that holds or waits is
	// charged for its worst case: 608 bytes for each of its keys, 6 for each byte of keys, value and
	// labels, and 192 if it has several keys, a value, labels or a LockDelay, or is made under another
	// lock. A request that exceeds the budget fails with ErrNoRoom. 1 MiB to 1 TiB, at most
	// MaxGroupBytes. Default: 64 MiB, about 95,000 locks of 16-byte keys.
	MaxSessionBytes int64

	// MaxGroupBytes bounds the memory of one voter for all sessions, locks, waiters, values and
	// data. Requests are charged as for MaxSessionBytes. A session is charged 1,024 bytes, and 6
	// more for each byte of its instance's description. The data of a key is charged 544 bytes, and
	// 6 more for each byte of the data. A sixteenth of the budget is reserved for sessions, so that
	// an instance that restarts finds room. With the default, a voter stays below 1 GiB. The value
	// is 1 MiB to 1 TiB. Default: 256 MiB, about 350,000 locks of 16-byte keys, or MaxSessionBytes
	// if that is more.
	//
	// Both budgets belong to the group. A group begins with the defaults, and adopts other values
	// when all its instances have them.
	MaxGroupBytes int64

	// MaxWaiting is the MaxWaiting of this instance's requests, by the prefix of their keys. The
	// longest prefix of a key counts, and "" is a prefix of all keys. Of a request for several keys,
	// the lowest value counts, and a request with a lower MaxWaiting keeps its own. LockSticky and
	// Resume have no such limit. All instances should have the same prefixes and values, 1 to 65,536.
	// Default: none.
	MaxWaiting map[string]int

	// StickyLocks is the largest number of free locks that each session of this instance keeps for
	// requests with [Node.LockSticky]. A lock beyond it is given back to the group. From 128 locks on,
	// the keys are divided into up to 16 parts with equal shares, so some are given back a little
	// earlier. Default: 10,000. Negative means none.
	StickyLocks int

	// StickyUnused is how long such a free lock is kept after its last use, from 1 ms to 1 h. More
	// than SessionTTL saves no message. Default: 1 s.
	StickyUnused time.Duration

	// Secret turns on encryption. Every instance derives a certificate from it, and connections use
	// mutual TLS 1.3 without a PKI. Create a secret with `mortise secret`. A random text of your
	// own (openssl rand -hex 32) is accepted if it is estimated at 128 bits or more.
	//
	// All instances that found the group or vote in it have the same root secret. Its holders are
	// trusted with every lock. A secret derived with -member is for an instance that may lock
	// everything, but never founds, votes or serves. Start refuses a secret with other
	// rights: it is for a program that only opens connections and is never a member. Default: none.
	Secret string

	// OldSecrets are accepted beside a root Secret while it is changed by rolling deployments: add
	// the new secret here on all instances, then swap the two, then drop the old one. A derived
	// secret is accepted while Secret or OldSecrets contains the secret that it was derived from.
	// At most 8.
	OldSecrets []string

	// TLS replaces Secret if you run your own PKI. It needs a certificate that is valid for clients
	// and servers, and the authorities (RootCAs and ClientCAs) that issue peers' certificates. Both
	// sides of a connection must use TLS 1.3 and present a certificate with a name. To say which
	// peers are instances, set TLSPeers, or set ServerName if all instances' certificates carry one
	// name. Or set VerifyConnection without TLSPeers and TLSGuests: then every peer that it accepts
	// is an instance. Default: none.
	TLS *tls.Config

	// TLSFiles is for certificates in files. It needs TLSPeers. Default: none.
	TLSFiles TLSFiles

	// TLSPeers lists the names that only instances' certificates carry: DNS names or SPIFFE IDs
	// (spiffe://trust.domain/path). It is used with TLS or TLSFiles. The holder of such a
	// certificate is an instance, trusted with every lock. Both sides refuse a certificate that has
	// no name of TLSPeers or TLSGuests. Names are compared literally, including wildcards. List two
	// names during a rename. Default: the ServerName of TLS.
	TLSPeers []string

	// TLSGuests lists the programs that are not instances. It is used with TLS or TLSFiles. A key
	// of the map is the name in a program's certificate, and the value is the program's rights: one
	// right per line, as in "lock cron/*\nread cron/*", or "member", or a whole Capability as
	// `mortise secret -json` prints it. A program with such rights only opens connections and
	// accepts none. TLSGuests must be equal on all instances. Default: none.
	TLSGuests map[string]string

	// Insecure allows an address other than a loopback address, although connections are not
	// encrypted. Every process that reaches the port can then take and break locks. Insecure cannot
	// be combined with Secret, TLS or TLSFiles. Default: false.
	Insecure bool

	// History receives a record from which a program can check later whether the cluster kept its
	// promises; see docs/CORRECTNESS.md. The record has a line of JSON for every call of Lock,
	// TryLock, Do and Unlock on this instance and for every lost lock. While this instance votes,
	// it also has a line for every lock that the group grants or ends. The lines contain keys,
	// tokens and instance names in plain text.
	//
	// One goroutine writes whole lines in order, and calls do not wait. If the writer is too slow,
	// lines are dropped, and Close returns an error. Close does not close the writer. Recording
	// costs about a microsecond per line and a goroutine per held lock. Default: nil, no recording.
	History io.Writer

	// Hooks are called for metrics and traces. Nil means none.
	Hooks *Hooks

	// Logger receives a few lines about changes of state and about the reasons of waits. Default:
	// slog.Default().
	Logger *slog.Logger

	warnings []string // found by ConfigFromEnv; Start logs them
}

// TLSFiles names PEM files with this instance's certificate and key, and with the authorities that
// issue all instances' certificates. Changed files are read again. If the new files are unusable,
// the error is logged and the old certificates stay in use. Start resolves relative paths.
type TLSFiles struct {
	Cert, Key, CA string
}

// defaultPort is one above 7946, the default port of Serf.
const defaultPort = "7947"

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name, _ = os.Hostname() // validate refuses an empty name
	}
	if c.Cluster == "" {
		c.Cluster = "mortise"
	}
	if c.Bind == "" && !c.unreachable() {
		c.Bind = ":" + defaultPort
	}
	if c.Voters == 0 {
		c.Voters = 3
	}
	if c.Hooks != nil {
		hooks := *c.Hooks
		c.Hooks = &hooks
	}
	c.DirFreeBytes = cmp.Or(c.DirFreeBytes, 64<<20)
	if c.SessionTTL == 0 {
		c.SessionTTL = 10 * time.Second
	}
	if c.Grace == 0 {
		c.Grace = c.SessionTTL
	}
	c.MaxSessionBytes = cmp.Or(c.MaxSessionBytes, int64(lockfsm.DefaultLimits().SessionBytes))
	c.MaxGroupBytes = cmp.Or(c.MaxGroupBytes, max(c.MaxSessionBytes, int64(lockfsm.DefaultLimits().GroupBytes)))
	c.StickyLocks, c.StickyUnused = cmp.Or(c.StickyLocks, 10_000), cmp.Or(c.StickyUnused, time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Join, c.Founders, c.OldSecrets = slices.Clone(c.Join), slices.Clone(c.Founders), slices.Clone(c.OldSecrets)
	c.MaxWaiting = maps.Clone(c.MaxWaiting)
	c.TLSPeers, c.TLSGuests = slices.Clone(c.TLSPeers), maps.Clone(c.TLSGuests)
	return c
}

func (c Config) alone() bool { return len(c.Join) == 0 && c.JoinFunc == nil }

func (c Config) unreachable() bool { return c.alone() && c.Bind == "" }

// group sets no grace for a node on its own, because no earlier group can exist.
func (c *Config) group() replica.Settings {
	g := replica.Settings{
		Replicas: c.Replicas, Founders: replica.Unique(c.Founders), Voters: c.Voters, SessionTTL: c.SessionTTL,
		Grace:        max(c.Grace, 0),
		SessionBytes: c.MaxSessionBytes, GroupBytes: c.MaxGroupBytes,
	}
	if c.alone() {
		g.Grace = 0
	}
	return g
}

const redacted = "[redacted]"

// withoutSecrets returns a copy of c in which the given text replaces each secret and an empty
// configuration replaces TLS.
func (c Config) withoutSecrets(with string) Config {
	if c.Secret != "" {
		c.Secret = with
	}
	if with == "" {
		c.OldSecrets = nil
	}
	c.OldSecrets = slices.Repeat([]string{with}, len(c.OldSecrets))
	if c.TLS != nil {
		c.TLS = &tls.Config{}
	}
	return c
}

// Format implements [fmt.Formatter]. For every verb it prints [redacted] in place of each secret,
// and prints no contents of TLS. Package fmt does not call Format for unexported fields: in a
// struct of your own, keep a Config in an exported field or behind a pointer.
func (c Config) Format(f fmt.State, verb rune) {
	type config Config // a type without the method Format
	c = c.withoutSecrets(redacted)
	if verb == 's' || verb == 'q' { // for numbers and functions, these verbs would print errors
		text := fmt.Sprintf("%+v", config(c))
		fmt.Fprintf(f, fmt.FormatString(f, verb), text)
		return
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), config(c))
}

// LogValue implements [slog.LogValuer], with the text of Format.
func (c Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", c)) }
