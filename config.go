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
// zero Config is a node on its own, for a laptop or a test; with Join it is one of several.
type Config struct {
	// Name identifies this instance in errors, logs, Status and Founders. With Founders it must be
	// unique in the cluster. 1 to 128 bytes. Default: the host name.
	Name string

	// Cluster separates the clusters of one network: an instance talks only to its own. It need not
	// be secret. 1 to 128 bytes. Default: "mortise".
	Cluster string

	// Bind is the address to listen on, host:port. One TCP port carries all traffic. Default:
	// ":7947" with Join. Without Join the node does not listen unless Bind is set, for example for
	// cmd/mortise. An address other than a loopback address needs Secret, TLS, TLSFiles or
	// Insecure. Without them a loopback address is open to every user of this machine.
	Bind string

	// Advertise is the address, host:port, at which others reach this instance. Default: Bind if it
	// names a host. Otherwise an address of this machine with the port of Bind: the source address
	// of connections to the hosts of Join, or the address of the host name, or the machine's only
	// address. Start fails rather than guess among several.
	Advertise string

	// Join lists where other instances may be found. An entry has one of these forms:
	//
	//	host:port, dns:///host:port   all addresses of the host
	//	srv:///name                   all addresses of the hosts in its SRV records, with their ports
	//	file:///path                  a file with one host:port per line; # begins a comment
	//
	// A file is read again when it has changed. Replace it by renaming a new one, or a half-written
	// list may be used for a moment.
	//
	// Entries are resolved forever, with jitter: every second without a leader, every ten seconds
	// with one. The list may contain this instance. An entry without addresses blocks nothing; one
	// that cannot be resolved blocks the founding of a group. On Kubernetes, set
	// publishNotReadyAddresses on the headless Service: no pod is ready before the group is
	// founded. With Join or JoinFunc, exactly one of Replicas and Founders is required. Default:
	// none, a node on its own.
	Join []string

	// JoinFunc returns further addresses, host:port each, from a discovery API of your own. It may
	// be used with Join or instead of it. One goroutine calls it every two seconds without a leader
	// and every ten seconds with one. It must return when its context ends: after two seconds, or
	// when the node closes. While it fails or panics, no group is founded, and the addresses of its
	// last successful call stay in use. Default: none.
	JoinFunc func(ctx context.Context) ([]string, error)

	// Replicas is the number of all instances that you run, for a fleet of fixed size. A group is
	// founded only when that many instances reach each other. 1 to 16, because each instance asks
	// all others; for a larger fleet use Founders.
	Replicas int

	// Founders are the Names of the instances that found the group and vote in it, for example the
	// first three of a StatefulSet. Use it for a fleet whose size varies or exceeds 16. At most 64
	// names.
	Founders []string

	// Voters is how many instances hold the replicated state: 1, 3, 5 or 7. The group survives the
	// loss of a minority of them. Default: 3.
	Voters int

	// Zone names the failure domain of this instance. Voters are spread over zones. At most 64
	// bytes. Default: "".
	Zone string

	// Dir is a directory for this instance's part of the replicated state: every voter writes each
	// change there before the change takes effect. So the state survives even if all voters are
	// killed at once. Each instance needs its own directory, on a disk of its own machine. Default:
	// "", in memory. A voter without a directory that restarts is a new instance, which gets the
	// vote of its earlier incarnation.
	Dir string

	// DirFreeBytes is the free space for Dir below which this instance warns in the log, in Status
	// and in Health. Measured on Linux only. Default: 64 MiB, eight segments of the log. Negative
	// means no warning.
	DirFreeBytes int64

	// SessionTTL is how long the locks of an instance outlive its last renewal. 1 s to 10 min.
	// Default: 10 s. It must be equal on all instances that found the group. An instance that joins
	// later with a higher value gets the group's, with a warning.
	SessionTTL time.Duration

	// Grace is the time for which a newly founded group only queues requests, so that every hold of
	// an earlier group has ended before the first grant. At least SessionTTL, at most 1 h. Default:
	// 0, the largest TTL. Negative means none, for tests and first deployments, which have no
	// earlier group.
	Grace time.Duration

	// MaxSessionBytes bounds the memory of one voter for the locks, waiters and values of one
	// session: the node's, or one of [Node.NewSession]. Each item is charged its worst case,
	// including its copies in snapshots and in the log: 608 bytes for a request that holds or
	// waits; another 192 if it has an owner, a value, labels, several keys or a delay; another 352
	// and 256 for each further key; and 6 for each byte of keys, values and labels. A request
	// beyond the budget fails with ErrNoRoom. 1 MiB to 1 TiB, at most MaxGroupBytes. Default: 64
	// MiB, about 95,000 locks of 16-byte keys.
	MaxSessionBytes int64

	// MaxGroupBytes bounds the memory of one voter for all sessions, locks, waiters, values and
	// data. To the charges of MaxSessionBytes it adds 1,024 bytes for a session and 6 for each byte
	// of its instance's description, and 544 for data and 6 for each of its bytes. A sixteenth is
	// reserved for sessions, so that an instance that restarts finds room. With the default a voter
	// stays below 1 GiB in the worst case. Like SessionTTL both budgets belong to the group. The
	// group begins with the defaults and adopts other values when all its instances name them. 1
	// MiB to 1 TiB. Default: 256 MiB, about 350,000 locks of 16-byte keys, or MaxSessionBytes if
	// that is more.
	MaxGroupBytes int64

	// Secret turns on encryption: every instance derives from it the cluster's own authority and
	// issues itself a certificate, so every connection is mutual TLS 1.3 without a PKI. Create one
	// with `mortise secret`. A random text of your own (openssl rand -hex 32) is accepted if its
	// estimated strength is 128 bits or more; Start then takes 40 ms longer. The root secret is the
	// same on all instances that found or vote, and its holders are trusted with every lock. A
	// secret derived with -member starts an instance that may lock everything but never founds,
	// votes or serves. For secrets with other rights see ErrGuestSecret. Default: none.
	Secret string

	// OldSecrets are accepted in addition to a root Secret while it is replaced by rolling
	// deployments: add the new secret here on all instances, then swap the two, then remove the old
	// one. A derived secret is accepted while its root secret is in Secret or in OldSecrets. At
	// most 8.
	OldSecrets []string

	// TLS replaces Secret if you run your own PKI. It needs certificates valid for both sides, and
	// the authorities (RootCAs and ClientCAs) that issue peers' certificates. TLS 1.3, and a
	// certificate and a name on both sides, are enforced. Set TLSPeers, or ServerName if all
	// instances' certificates carry one name, or VerifyConnection, which then alone decides which
	// peers are instances. Default: none.
	TLS *tls.Config

	// TLSFiles is TLS from files, which are read again when they change. It needs TLSPeers or its
	// own ServerName. Default: none.
	TLSFiles TLSFiles

	// TLSPeers are the names that only instances' certificates carry, for TLS and TLSFiles: DNS
	// names or SPIFFE IDs (spiffe://trust.domain/path). The holder of such a certificate is an
	// instance, trusted with every lock. Both sides refuse a certificate with no name of TLSPeers
	// or TLSGuests. Names are compared literally: a wildcard in a certificate matches only if it is
	// listed. List two names during a rename. Default: the ServerName of TLS or TLSFiles.
	TLSPeers []string

	// TLSGuests are the names in certificates of programs that are not instances, for TLS and
	// TLSFiles, with their rights: one per line, as in "lock cron/*\nread cron/*", or "member", or
	// a whole capability text of mortise secret. Such a program only dials. The lists must be equal
	// on all instances. Default: none.
	TLSGuests map[string]string

	// Insecure allows an address other than a loopback address without Secret, TLS or TLSFiles.
	// Then every process that reaches the port can take and break locks. Default: false.
	Insecure bool

	// History receives the record from which the judge decides later whether the cluster kept its
	// promises: a line of JSON for every call of Lock, TryLock, Do and Unlock here, for every lost
	// lock, and, while this instance votes, for every lock that the group grants or ends. The lines
	// contain keys, tokens and instance names in clear. docs/CORRECTNESS.md explains how to judge
	// the files of all instances. One goroutine writes whole lines in order, and no call waits for
	// it. If the writer is too slow, lines are dropped: Close then returns an error, and the judge
	// counts the calls as unknown. The writer is not closed. Recording costs about a microsecond
	// per line and a goroutine per held lock. Default: nil, no recording.
	History io.Writer

	// Hooks are called for metrics and traces. adapters/mortiseotel has a ready set. Nil means
	// none.
	Hooks *Hooks

	// Logger receives a few lines: changes of state, and what the node waits for. Default:
	// slog.Default().
	Logger *slog.Logger

	warnings []string // warnings of ConfigFromEnv, which has no Logger
}

// TLSFiles names PEM files with this instance's certificate and key, and with the authorities that
// issue all instances' certificates. They are read again when they have changed. If a new set is
// broken, the error is logged and the old set stays in use.
type TLSFiles struct {
	Cert, Key, CA string

	// ServerName is the name that dialers request (SNI). If TLSPeers is empty it is the one DNS
	// name that all instances' certificates carry. Default: the host that is dialed.
	ServerName string
}

// defaultPort is next to 7946, the port of other gossip tools.
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
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Join, c.Founders, c.OldSecrets = slices.Clone(c.Join), slices.Clone(c.Founders), slices.Clone(c.OldSecrets)
	c.TLSPeers, c.TLSGuests = slices.Clone(c.TLSPeers), maps.Clone(c.TLSGuests)
	return c
}

func (c Config) alone() bool { return len(c.Join) == 0 && c.JoinFunc == nil }

func (c Config) unreachable() bool { return c.alone() && c.Bind == "" }

// group returns the group settings. A node on its own needs no grace: it had no earlier group.
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

// Programs print a Config in logs, so the rest of this file keeps secrets out of printed output.

const redacted = "[redacted]"

// withoutSecrets returns a copy with with in place of every secret, and without TLS, which may hold
// a key.
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
// and nothing of TLS. The fmt package does not call methods on unexported fields: in a struct of
// your own, keep a Config in an exported field or behind a pointer.
func (c Config) Format(f fmt.State, verb rune) {
	type config Config // the same fields without the method Format
	c = c.withoutSecrets(redacted)
	if verb == 's' || verb == 'q' { // for numbers and functions these verbs print only errors
		text := fmt.Sprintf("%+v", config(c))
		fmt.Fprintf(f, fmt.FormatString(f, verb), text)
		return
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), config(c))
}

// LogValue implements [slog.LogValuer], with the text of Format.
func (c Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", c)) }
