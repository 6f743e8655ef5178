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

// Config says how one instance takes part. It is passed by value and copied: neither side changes
// it afterwards. The zero value is a node on its own, for a laptop or a test; with Join it is one
// of several. Every field's zero value means the documented default.
type Config struct {
	// Name is what people call this instance in errors, logs and Status, and what Founders refers
	// to. It must be unique in the cluster if Founders is used. 1 to 128 bytes. Default: the host
	// name.
	Name string

	// Cluster separates the clusters of one network: an instance talks only to instances of the
	// same Cluster. It is no secret. 1 to 128 bytes. Default: "mortise".
	Cluster string

	// Bind is the address to listen on, host:port. One TCP port carries everything. Default:
	// ":7947" with Join; without it the node listens nowhere, since it has no other instance to
	// talk to. Set Bind beside an empty Join only to reach a node on its own from outside its
	// process, with cmd/mortise for example. Anything but a loopback address needs Secret, TLS,
	// TLSFiles or Insecure. A loopback address without them is open to every user of this machine:
	// they can take and break locks.
	Bind string

	// Advertise is the address, host:port, at which the other instances reach this one. Default:
	// Bind if it names a host, else an address of this machine with the port that is listened on:
	// the one from which the hosts of Join are reached, or the one that the host name stands for,
	// or the only one. Start fails, and says so, rather than guess between several.
	Advertise string

	// Join lists where other instances may be found. An entry is one of
	//
	//	host:port, dns:///host:port   all addresses of the host
	//	srv:///name                   the hosts and ports of its SRV records, and all addresses of those hosts
	//	file:///path                  a file with one host:port a line; # begins a comment. It is read again when it has changed;
	//	                              replace it by renaming a new one, or a half-written list may count for a moment
	//
	// All are looked up for ever, every second while there is no leader and every ten with one,
	// each time a little later at random. The own address may be among them. What has no addresses
	// yet blocks nothing; what cannot be looked up blocks the founding of a group. On Kubernetes,
	// set publishNotReadyAddresses on the headless Service: nobody is ready before the group is
	// founded. With Join (or JoinFunc), exactly one of Replicas and Founders is required. Default:
	// none, a node on its own.
	Join []string

	// JoinFunc returns further places, host:port each, for those who find their instances by an API
	// of their own; it may stand beside Join or in its place. It is called every two seconds while
	// there is no leader and every ten with one, on a goroutine of its own, never twice at a time.
	// Its context ends after two seconds, and when the node closes; it has to return then. An
	// error, or a panic, blocks the founding of a group, and the places that were returned before
	// stay worth asking. Default: none.
	JoinFunc func(ctx context.Context) ([]string, error)

	// Replicas is how many instances you run, all of them. A group is founded only by that many
	// instances that reach each other. Right for a fleet of fixed size. 1 to 16: each instance asks
	// all others. A larger fleet has Founders.
	Replicas int

	// Founders are the Names of the instances that found the group and vote in it, for example the
	// first three of a StatefulSet. Right for a fleet whose size varies, and for one of more than
	// 16. Up to 64.
	Founders []string

	// Voters is how many instances shall hold the replicated state: one of 1, 3, 5, 7. The group
	// survives the loss of a minority of them. Default: 3.
	Voters int

	// Zone names the failure domain of this instance; it is shown in Status and voters are spread
	// over zones. At most 64 bytes. Default: "".
	Zone string

	// Dir is a directory in which this instance keeps its part of the replicated state, for
	// services that want to survive the loss of a majority of the voters without a pause: every
	// voter writes each change there before it counts. One directory per instance, on a disk of its
	// own machine. Default: "", memory; then a voter that restarts is somebody new, and gets a vote
	// again in place of what it was.
	Dir string

	// DirFreeBytes is the room in the file system of Dir below which this instance warns: in the
	// log, in Status and in Health. Measured on Linux only. Default: 64 MiB, eight segments of the
	// log. Negative: no warning.
	DirFreeBytes int64

	// SessionTTL is how long the locks of an instance outlive its last sign of life. 1 s to 10 min.
	// Default: 10 s. It has to be equal on all instances that found the group; one that joins later
	// with a higher value gets the group's, with a warning.
	SessionTTL time.Duration

	// Grace is how long a newly founded group only queues requests, so that no holder of an earlier
	// group can still believe in its lock. Not shorter than SessionTTL, at most 1 h. Default: 0,
	// the largest TTL. Negative: none, for tests and for a first deployment, where no earlier group
	// can exist.
	Grace time.Duration

	// MaxSessionBytes is how much memory of one voter the locks, waiters and values of one session
	// may cost. A node has one session, and each [Node.NewSession] one more. What a thing costs is
	// charged by its worst case, with its copies in snapshots and in the log: 608 bytes for a
	// request that holds or waits, 192 if it has an owner, a value, labels, several keys or a
	// delay, 352 and 256 for each further key, and 6 for each byte of keys, values and labels. A
	// request for which there is no room is ErrNoRoom. 1 MiB to 1 TiB, at most MaxGroupBytes.
	// Default: 64 MiB, about 95,000 locks of 16-byte keys.
	MaxSessionBytes int64

	// MaxGroupBytes is how much all sessions, locks, waiters, values and data together may cost one
	// voter, charged likewise: 1,024 bytes for a session and 6 for each byte of what its instance
	// says of itself, 544 for data and 6 for each of its bytes. A sixteenth is kept for sessions,
	// so that an instance that restarts finds room. The default keeps the memory of a voter below 1
	// GiB in the worst case. Like SessionTTL, both budgets are the group's: it begins with the
	// defaults, and adopts others once all its instances name them. 1 MiB to 1 TiB. Default: 256
	// MiB, about 350,000 locks of 16-byte keys, or MaxSessionBytes if that is more.
	MaxGroupBytes int64

	// Secret is all that is needed for encryption: from it every instance derives the cluster's own
	// authority and makes itself a certificate, so that every connection is mutual TLS 1.3 with no
	// PKI to run. Make one with `mortise secret`; a random text of your own (openssl rand -hex 32)
	// is accepted if it is estimated at 128 bits or more, and costs 40 ms at the start. The root
	// secret is the same on all instances that found or vote, and its holders are trusted with
	// every lock. A secret derived from it with -member starts an instance that locks everything
	// and never founds, votes or serves; with other rights, see ErrGuestSecret. Default: none.
	Secret string

	// OldSecrets are accepted beside a root Secret, so that a secret can be changed by rolling
	// deploys: first add the new one here on all instances, then exchange the two, then drop the
	// old one. What was derived from a secret is accepted as long as that secret stands in Secret
	// or here. At most 8.
	OldSecrets []string

	// TLS replaces Secret if you run your own PKI: certificates that serve both sides, and the
	// authorities (RootCAs and ClientCAs) that peers' certificates must come from. TLS 1.3,
	// certificates on both sides and names on both sides are enforced: set TLSPeers, or ServerName
	// if all instances' certificates carry one name, or VerifyConnection, which then decides alone
	// what is an instance. Default: none.
	TLS *tls.Config

	// TLSFiles is TLS from files, which are read again when they change. It needs TLSPeers, or its
	// ServerName. Default: none.
	TLSFiles TLSFiles

	// TLSPeers are the names that only instances' certificates carry, for TLS and TLSFiles: DNS
	// names or SPIFFE IDs (spiffe://trust.domain/path). A certificate of the authorities that
	// carries one of them is an instance, trusted with every lock; one that carries no name of
	// TLSPeers or TLSGuests is refused, by the side that is dialed and by the side that dials.
	// Names are compared as they stand in the certificate: a wildcard counts only if it is listed.
	// Name two during a rename. Default: the ServerName of TLS or TLSFiles.
	TLSPeers []string

	// TLSGuests are the names in certificates that are not instances, for TLS and TLSFiles, each
	// with its rights: one a line, as in "lock cron/*\nread cron/*", or "member", or a whole
	// capability text of mortise secret. Such a certificate dials only. The lists must be equal on
	// all instances. Default: none.
	TLSGuests map[string]string

	// Insecure allows an address that is not a loopback address without Secret, TLS or TLSFiles:
	// anybody who reaches the port can take and break locks. Default: false.
	Insecure bool

	// History gets what is needed to judge afterwards whether the cluster kept its promises: a line
	// of JSON for every call of Lock, TryLock, Do and Unlock here, for every lock that was lost,
	// and, while this instance votes, for every lock that the group grants or ends. It names keys,
	// tokens and instances, in clear. docs/CORRECTNESS.md says how to judge the files of all
	// instances. Lines are written by one goroutine, whole and in order; the writer is not closed,
	// and no call waits for it: what it is too slow for is dropped, which Close then returns as an
	// error and the judge calls unknown. It costs about a microsecond a line and a goroutine for
	// each lock that is held. Default: nil, nothing is recorded.
	History io.Writer

	// Hooks are told what happens, for metrics and traces. adapters/mortiseotel has some that are
	// ready to use. Default: nil, nobody is told.
	Hooks *Hooks

	// Logger gets few lines: changes of state, and what the node waits for. Default:
	// slog.Default().
	Logger *slog.Logger

	warnings []string // of ConfigFromEnv, which has no log
}

// TLSFiles names PEM files with this instance's certificate and key and with the authorities that
// all instances' certificates come from. They are read again when they have changed; a broken new
// set is reported and the old one kept.
type TLSFiles struct {
	Cert, Key, CA string

	// ServerName is the name that dialers ask for (SNI). If TLSPeers is empty it is the one DNS
	// name that all instances' certificates carry. Default: the host that is dialed.
	ServerName string
}

// defaultPort is where instances with Join listen: beside, and not on, the port of other gossip
// tools (7946).
const defaultPort = "7947"

// withDefaults returns a copy in which every zero value is replaced by its default.
func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name, _ = os.Hostname() // an empty name is refused by validate
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

// alone reports whether this is a node on its own.
func (c Config) alone() bool { return len(c.Join) == 0 && c.JoinFunc == nil }

// unreachable reports whether this is a node on its own that no other process is to reach.
func (c Config) unreachable() bool { return c.alone() && c.Bind == "" }

// group returns what this configuration says of the group. A node on its own needs no grace: its
// group is closed, nobody else can have been granted anything.
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

// This file keeps secrets out of what is printed. A Config ends up in logs sooner or later, and a
// Node by way of a struct that holds one.

// redacted stands where a secret is.
const redacted = "[redacted]"

// withoutSecrets returns a copy in which every secret is replaced by with, and without TLS, which
// may hold a key.
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

// Format implements [fmt.Formatter]: for every verb it shows [redacted] in place of Secret, of each
// of OldSecrets, and nothing of TLS. The fmt package asks neither this method nor any other about
// an unexported field: in a struct of your own keep a Config in an exported field, or behind a
// pointer.
func (c Config) Format(f fmt.State, verb rune) {
	type config Config // without this method
	c = c.withoutSecrets(redacted)
	if verb == 's' || verb == 'q' { // their complaints about numbers and functions would be all that is seen
		text := fmt.Sprintf("%+v", config(c))
		fmt.Fprintf(f, fmt.FormatString(f, verb), text)
		return
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), config(c))
}

// LogValue implements [slog.LogValuer], as Format does it for fmt.
func (c Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("%+v", c)) }
