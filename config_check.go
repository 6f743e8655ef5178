package mortise

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise/cluster/discovery"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/session/client"
)

type configErrors []error

func (cs *configErrors) add(field, format string, args ...any) {
	*cs = append(*cs, fmt.Errorf("Config.%s: %s", field, fmt.Sprintf(format, args...)))
}

func (c Config) validate() error {
	var wrong configErrors
	wrong.checkEach(c)
	wrong.checkBind(c)
	wrong.checkSecurity(c)
	wrong.checkFounding(c)
	if c.Dir != "" && c.RunDir != "" {
		wrong.add("RunDir", "is set together with Dir: leave RunDir out, since a start with Dir does the same")
	}
	if c.Grace >= 0 && c.Grace < c.SessionTTL {
		wrong.add("Grace", "%v is shorter than SessionTTL (%v): a holder of an earlier group could still rely on its "+
			"lock; leave it 0, or set it negative where no earlier group can exist", c.Grace, c.SessionTTL)
	}
	return wrong.joined()
}

func (cs configErrors) joined() error {
	if len(cs) == 0 {
		return nil
	}
	return fmt.Errorf("mortise: the configuration has %d mistake(s):\n%w", len(cs), errors.Join(cs...))
}

// resolvePaths makes all paths absolute, so that they name the same files after a change of the
// process's working directory.
func (c *Config) resolvePaths() error {
	var wrong configErrors
	resolve := func(field string, path *string) {
		if *path == "" {
			return
		}
		full, err := filepath.Abs(*path)
		if err != nil {
			wrong.add(field, "%q is relative, and the working directory is unknown; use an absolute path: %v", *path, err)
			return
		}
		*path = full
	}
	resolve("Dir", &c.Dir)
	resolve("RunDir", &c.RunDir)
	resolve("TLSFiles.Cert", &c.TLSFiles.Cert)
	resolve("TLSFiles.Key", &c.TLSFiles.Key)
	resolve("TLSFiles.CA", &c.TLSFiles.CA)
	return wrong.joined()
}

// minSessionTTL leaves room for renewals and for the lease margin.
const minSessionTTL = time.Second

// checkEach checks the fields one by one, so it can be used on an incomplete Config.
func (cs *configErrors) checkEach(c Config) {
	cs.checkText("Name", c.Name, 1, 128)
	cs.checkText("Cluster", c.Cluster, 1, 128)
	cs.checkText("Zone", c.Zone, 0, 64)
	cs.checkText("Dir", c.Dir, 0, 4096)
	cs.checkText("RunDir", c.RunDir, 0, 4096)
	if err := checkAddress(c.Bind, false); err != nil && !c.unreachable() {
		cs.add("Bind", "%v", err)
	}
	if c.Advertise != "" {
		cs.checkAdvertise(c.Advertise)
	}
	for i, entry := range c.Join {
		if err := discovery.Check(entry); err != nil {
			cs.add(fmt.Sprintf("Join[%d]", i), "%v", err)
		}
	}
	if c.Replicas < 0 || c.Replicas > replica.MaxReplicas {
		cs.add("Replicas", "%d is not between 1 and %d; for a larger fleet set Founders, the names of three or five "+
			"instances that found the group and vote",
			c.Replicas, replica.MaxReplicas)
	}
	cs.checkFounders(c.Founders)
	if c.Voters < 1 || c.Voters > 7 || c.Voters%2 == 0 {
		cs.add("Voters", "%d is not one of 1, 3, 5, 7", c.Voters)
	}
	if c.SessionTTL < minSessionTTL || c.SessionTTL > client.LongestTTL {
		cs.add("SessionTTL", "%v is not between 1s and 10m", c.SessionTTL)
	}
	cs.checkBudget("MaxSessionBytes", c.MaxSessionBytes)
	cs.checkBudget("MaxGroupBytes", c.MaxGroupBytes)
	if c.MaxSessionBytes > c.MaxGroupBytes {
		cs.add("MaxSessionBytes", "%d is more than MaxGroupBytes, %d", c.MaxSessionBytes, c.MaxGroupBytes)
	}
	for _, prefix := range slices.Sorted(maps.Keys(c.MaxWaiting)) {
		if most := c.MaxWaiting[prefix]; most < 1 || most > maxWaiting {
			cs.add(fmt.Sprintf("MaxWaiting[%q]", prefix), "%d is not between 1 and %d; a request that must not wait has "+
				"Request.Try", most, maxWaiting)
		}
	}
	if c.StickyUnused < time.Millisecond || c.StickyUnused > time.Hour {
		cs.add("StickyUnused", "%v is not between 1ms and 1h", c.StickyUnused)
	}
	if c.Grace > time.Hour {
		cs.add("Grace", "%v is longer than 1h", c.Grace)
	}
}

const (
	minBudget = 1 << 20
	maxBudget = 1 << 40

	maxWaiting = 65_536 // the group's limit for each key
)

func (cs *configErrors) checkBudget(field string, bytes int64) {
	if bytes < minBudget || bytes > maxBudget {
		cs.add(field, "%d is not between %d (1 MiB) and %d (1 TiB)", bytes, int64(minBudget), int64(maxBudget))
	}
}

func (cs *configErrors) checkText(field, text string, least, most int) {
	switch {
	case len(text) < least:
		cs.add(field, "is empty, and no default could be found; set it")
	case len(text) > most:
		cs.add(field, "has %d bytes, more than %d", len(text), most)
	case !plain.Is(text):
		cs.add(field, "%q %s", text, plain.NotText)
	}
}

func (cs *configErrors) checkBind(c Config) {
	if checkAddress(c.Bind, false) != nil {
		return // checkEach has reported it
	}
	open := c.Secret == "" && c.TLS == nil && c.TLSFiles == TLSFiles{} && !c.Insecure
	if host, _, _ := net.SplitHostPort(c.Bind); open && !isLoopback(host) {
		cs.add("Bind", "%q is reachable from other machines and nothing protects it: set Secret (or TLS), bind a "+
			"loopback address, or set Insecure to let every process that reaches the port take and break locks", c.Bind)
	}
}

func (cs *configErrors) checkSecurity(c Config) {
	chosen := 0
	for _, set := range [...]bool{c.Secret != "", c.TLS != nil, c.TLSFiles != TLSFiles{}, c.Insecure} {
		if set {
			chosen++
		}
	}
	if chosen > 1 {
		cs.add("Secret", "set one of Secret, TLS, TLSFiles and Insecure, not several")
	}
	if c.Secret == "" && len(c.OldSecrets) > 0 {
		cs.add("OldSecrets", "is set without Secret")
	}
	if len(c.OldSecrets) > 8 {
		cs.add("OldSecrets", "has %d entries, more than 8", len(c.OldSecrets))
	}
	if c.TLS == nil && c.TLSFiles == (TLSFiles{}) && len(c.TLSPeers)+len(c.TLSGuests) > 0 {
		cs.add("TLSPeers", "TLSPeers and TLSGuests need TLS or TLSFiles: set that too, or leave them out")
	}
	if chosen != 1 {
		return
	}
	source, err := c.credentials(nil, nil)
	if err == nil {
		err = c.mayStart(source)
	}
	if err != nil {
		*cs = append(*cs, err)
	}
}

func (cs *configErrors) checkAdvertise(address string) {
	if err := checkAddress(address, true); err != nil {
		cs.add("Advertise", "%v", err)
		return
	}
	if host, _, _ := net.SplitHostPort(address); isUnspecified(host) {
		cs.add("Advertise", "%q names no host that other instances can reach", address)
	}
}

func (cs *configErrors) checkFounding(c Config) {
	switch {
	case c.alone() && (c.Replicas != 0 || len(c.Founders) != 0):
		cs.add("Join", "is empty, but Replicas or Founders is set: list the addresses of the other instances, or drop "+
			"both for a node on its own")
	case !c.alone() && c.Replicas == 0 && len(c.Founders) == 0:
		cs.add("Replicas", "with Join, set either Replicas (how many instances you run in total) or Founders (the "+
			"names of the instances that vote)")
	case c.Replicas != 0 && len(c.Founders) != 0:
		cs.add("Replicas", "set either Replicas or Founders, not both")
	}
}

func (cs *configErrors) checkFounders(founders []string) {
	if len(founders) > replica.MaxFounders {
		cs.add("Founders", "has %d names, more than %d", len(founders), replica.MaxFounders)
	}
	for i, name := range founders {
		cs.checkText(fmt.Sprintf("Founders[%d]", i), name, 1, replica.MaxFounderBytes)
		if slices.Index(founders, name) < i {
			cs.add("Founders", "%q is listed twice", name)
		}
	}
}

// checkAddress returns what is wrong with a host:port, or nil. If reachable is set, the address
// must have a host and a port other than 0.
func checkAddress(address string, reachable bool) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not host:port", address)
	}
	number, err := strconv.Atoi(port)
	switch {
	case err != nil || number < 0 || number > 65535:
		return fmt.Errorf("%q has no port between 0 and 65535", address)
	case reachable && number == 0:
		return fmt.Errorf("%q has port 0, which cannot be dialed", address)
	case reachable && host == "":
		return fmt.Errorf("%q names no host", address)
	case !plain.Is(host) || len(host) > 253:
		return fmt.Errorf("%q is not a host name or an IP address", address)
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func isUnspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// credentials returns nil if connections are not encrypted.
func (c Config) credentials(wall func() time.Time, random func([]byte)) (*credentials.Source, error) {
	names := credentials.Names{Peers: c.TLSPeers, Guests: c.TLSGuests}
	switch {
	case c.Secret != "":
		return credentials.FromSecret(credentials.SecretConfig{
			Secret: c.Secret, Old: c.OldSecrets, Cluster: c.Cluster, Now: wall, Random: random,
		})
	case c.TLS != nil:
		return credentials.FromTLS(c.TLS, names)
	case c.TLSFiles != TLSFiles{}:
		return credentials.FromFiles(credentials.FilesConfig{
			CertFile: c.TLSFiles.Cert, KeyFile: c.TLSFiles.Key, CAFile: c.TLSFiles.CA,
			Names: names, Logger: c.Logger, Now: wall,
		})
	}
	return nil, nil
}

func (c Config) mayStart(source *credentials.Source) error {
	if source == nil {
		return nil
	}
	field := "Secret"
	if c.Secret == "" {
		field = "TLSPeers"
	}
	own, err := source.Own()
	switch {
	case err != nil:
		return fmt.Errorf("Config.TLSPeers: lacks the name of this instance's own certificate, so the others "+
			"would refuse it: %w", err)
	case own.Tier == credentials.Guest:
		return fmt.Errorf("Config.%s: a guest's secret cannot start an instance: use it with the commands of mortise, or "+
			"derive one with -member (it is for %q)", field, own.Name)
	case own.Tier != credentials.Member:
		return nil
	case c.Dir != "":
		return fmt.Errorf("Config.Dir: is set together with a member's secret (for %q): leave it out, since a member "+
			"has no replica to keep", own.Name)
	case c.Replicas != 0:
		return fmt.Errorf("Config.Replicas: is set together with a member's secret (for %q): a group that is founded "+
			"by Replicas needs the root secret on every instance; use Founders", own.Name)
	case slices.Contains(c.Founders, c.Name):
		return fmt.Errorf("Config.Founders: names this instance, %q, which has a member's secret (for %q): "+
			"founders need the root secret", c.Name, own.Name)
	case c.alone():
		return fmt.Errorf("Config.Join: is empty, but with a member's secret (for %q) an instance can only join "+
			"others: list their addresses", own.Name)
	}
	return nil
}

func identityOf(source *credentials.Source) credentials.Peer {
	if source != nil {
		if own, err := source.Own(); err == nil { // mayStart has already reported an error of Own
			return own
		}
	}
	return credentials.Peer{Tier: credentials.Root}
}
