package mortise

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/credentials"
)

// ConfigFromEnv reads a Config from environment variables whose names begin with prefix and an underscore. With the prefix ORDERS_LOCK:
//
//	ORDERS_LOCK_NAME             Name
//	ORDERS_LOCK_CLUSTER          Cluster
//	ORDERS_LOCK_BIND             Bind
//	ORDERS_LOCK_ADVERTISE        Advertise; an IP address alone gets the port of Bind
//	ORDERS_LOCK_JOIN             Join, separated by commas
//	ORDERS_LOCK_REPLICAS         Replicas
//	ORDERS_LOCK_FOUNDERS         Founders, separated by commas
//	ORDERS_LOCK_VOTERS           Voters
//	ORDERS_LOCK_ZONE             Zone
//	ORDERS_LOCK_DIR              Dir
//	ORDERS_LOCK_DIR_FREE_BYTES   DirFreeBytes, as 64MiB
//	ORDERS_LOCK_SESSION_TTL      SessionTTL, as 10s or 1m
//	ORDERS_LOCK_GRACE            Grace, likewise, or none
//	ORDERS_LOCK_MAX_SESSION_BYTES MaxSessionBytes, as 67108864, 64MiB or 1GiB
//	ORDERS_LOCK_MAX_GROUP_BYTES  MaxGroupBytes, likewise
//	ORDERS_LOCK_SECRET           Secret, a root secret or a derived one
//	ORDERS_LOCK_SECRET_FILE      a file that holds Secret and nothing else but a line break at its end
//	ORDERS_LOCK_OLD_SECRETS      OldSecrets, separated by commas
//	ORDERS_LOCK_OLD_SECRETS_FILE a file that holds OldSecrets, one a line
//	ORDERS_LOCK_TLS_CERT_FILE    TLSFiles.Cert
//	ORDERS_LOCK_TLS_KEY_FILE     TLSFiles.Key
//	ORDERS_LOCK_TLS_CA_FILE      TLSFiles.CA
//	ORDERS_LOCK_TLS_SERVER_NAME  TLSFiles.ServerName
//	ORDERS_LOCK_TLS_PEERS        TLSPeers, separated by commas
//	ORDERS_LOCK_TLS_GUESTS_FILE  a file that holds TLSGuests: a name and one of its rights a line, as in "cron.internal lock cron/*"; # begins
//	                             a comment line, and a name may have several lines
//	ORDERS_LOCK_INSECURE         Insecure: true or false
//
// A file of secrets that other users may read or write is used all the same, and one line of WARN
// in [slog.Default] names it. Its group may read it if it belongs to root: so do the files of
// Kubernetes and systemd.
//
// White space around values and around the parts of a list does not count, and an empty variable is none. JoinFunc, TLS, History, Hooks and
// Logger have no variables: set them in what is returned. Nothing else is read from the environment, here or in Start.
//
// The error names all mistakes at once, by variable, and a variable with the prefix that is none of these is one, since it is most
// likely misspelt. What Kubernetes and Docker add for a service of that name (ORDERS_LOCK_SERVICE_HOST, ORDERS_LOCK_PORT_7947_TCP) is
// passed over. What depends on several fields is checked by Start. No error holds a secret.
func ConfigFromEnv(prefix string) (Config, error) {
	return configFromEnv(prefix, os.Environ())
}

// environment is what ConfigFromEnv reads, and what it has to say about it.
type environment struct {
	prefix string // with its underscore
	values map[string]string
	known  []string // suffixes that were asked for
	wrong  []error
	warn   []string // what Start logs
}

// prefixForm is what the name of a variable may begin with.
const prefixForm = "^[A-Za-z_][A-Za-z0-9_]*$"

func configFromEnv(prefix string, environ []string) (Config, error) {
	prefix = strings.TrimSuffix(prefix, "_")
	if !regexp.MustCompile(prefixForm).MatchString(prefix) {
		return Config{}, fmt.Errorf("mortise: ConfigFromEnv: the prefix %q cannot begin the name of a variable: "+
			"take one as ORDERS_LOCK", prefix)
	}
	if runtime.GOOS == "windows" {
		prefix = strings.ToUpper(prefix) // names have no case there
	}
	e := &environment{prefix: prefix + "_", values: map[string]string{}}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		suffix, ours := strings.CutPrefix(name, e.prefix)
		if _, twice := e.values[suffix]; ours && !twice {
			e.values[suffix] = strings.TrimSpace(value)
		}
	}
	c := Config{
		Name: e.text("NAME"), Cluster: e.text("CLUSTER"), Bind: e.text("BIND"), Join: e.list("JOIN"), Replicas: e.number("REPLICAS"),
		Founders: e.list("FOUNDERS"), Voters: e.number("VOTERS"), Zone: e.text("ZONE"), Dir: e.text("DIR"),
		DirFreeBytes: e.bytes("DIR_FREE_BYTES"), SessionTTL: e.duration("SESSION_TTL", false),
		Grace: e.duration("GRACE", true), Insecure: e.flag("INSECURE"),
		MaxSessionBytes: e.bytes("MAX_SESSION_BYTES"), MaxGroupBytes: e.bytes("MAX_GROUP_BYTES"),
		TLSFiles: TLSFiles{Cert: e.text("TLS_CERT_FILE"), Key: e.text("TLS_KEY_FILE"), CA: e.text("TLS_CA_FILE"), ServerName: e.text("TLS_SERVER_NAME")},
		TLSPeers: e.list("TLS_PEERS"), TLSGuests: e.guests(),
	}
	c.Advertise = e.advertise(c.Bind)
	c.Secret, c.OldSecrets = e.secret(), e.oldSecrets()
	c.warnings = e.warn
	e.check(c)
	e.unknown()
	if len(e.wrong) > 0 {
		return Config{}, fmt.Errorf("mortise: the environment has %d mistake(s):\n%w", len(e.wrong), errors.Join(e.wrong...))
	}
	return c, nil
}

// fault notes a mistake in a variable.
func (e *environment) fault(suffix, format string, args ...any) {
	e.wrong = append(e.wrong, fmt.Errorf("%s%s: %s", e.prefix, suffix, fmt.Sprintf(format, args...)))
}

// text returns a variable's value, and that it is one of ours.
func (e *environment) text(suffix string) string {
	e.known = append(e.known, suffix)
	return e.values[suffix]
}

func (e *environment) list(suffix string) []string {
	text := e.text(suffix)
	if text == "" {
		return nil
	}
	parts := strings.Split(strings.TrimSuffix(text, ","), ",")
	for i, part := range parts {
		if parts[i] = strings.TrimSpace(part); parts[i] == "" {
			e.fault(suffix, "part %d of the list is empty", i+1)
		}
	}
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" })
}

func (e *environment) number(suffix string) int {
	text := e.text(suffix)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		e.fault(suffix, "%q is not a number", text)
	}
	if err == nil && n == 0 {
		e.fault(suffix, "0 means nothing here: leave it empty for the default")
	}
	return n
}

// bytes reads a number of bytes, which may have a unit.
func (e *environment) bytes(suffix string) int64 {
	text := e.text(suffix)
	if text == "" {
		return 0
	}
	digits, unit := text, int64(1)
	for i, name := range [...]string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, found := strings.CutSuffix(text, name); found {
			digits, unit = strings.TrimSpace(rest), 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > maxBudget/unit {
		e.fault(suffix, "%q is not a number of bytes up to 1TiB, as 67108864 or 64MiB: leave it empty for the default", text)
		return 0
	}
	return n * unit
}

func (e *environment) flag(suffix string) bool {
	switch text := e.text(suffix); strings.ToLower(text) {
	case "", "false", "0", "no":
		return false
	case "true", "1", "yes":
		return true
	default:
		e.fault(suffix, "%q is neither true nor false", text)
		return false
	}
}

// duration reads a length of time. A negative one is said by a word, since it means none.
func (e *environment) duration(suffix string, none bool) time.Duration {
	text := e.text(suffix)
	switch {
	case text == "":
		return 0
	case none && text == "none":
		return -1
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		e.fault(suffix, "%q is not a length of time: write 10s or 1m", text)
	case d <= 0 && none:
		e.fault(suffix, "%q: leave it empty for the default, or write none", text)
	case d <= 0:
		e.fault(suffix, "%q is not above zero", text)
	default:
		return d
	}
	return 0
}

// advertise completes an IP address alone, as Kubernetes hands it to a pod, by the port of Bind. To write $(POD_IP):7947 instead fails with
// IPv6.
func (e *environment) advertise(bind string) string {
	text := e.text("ADVERTISE")
	ip, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return text
	}
	port := defaultPort
	if bind != "" {
		_, port, _ = net.SplitHostPort(bind)
	}
	if port == "" || port == "0" {
		e.fault("ADVERTISE", "%q has no port, and %sBIND gives none: write host:port", text, e.prefix)
		return ""
	}
	return net.JoinHostPort(ip.String(), port)
}

// secret is what is in the variable or in the file that another one names.
func (e *environment) secret() string {
	text, path := e.text("SECRET"), e.text("SECRET_FILE")
	switch {
	case text != "" && path != "":
		e.fault("SECRET_FILE", "is set beside %sSECRET: set one of them", e.prefix)
	case path != "":
		lines := e.lines("SECRET_FILE", path)
		if len(lines) > 1 {
			e.fault("SECRET_FILE", "%s has more than one line: old secrets belong in %sOLD_SECRETS_FILE", path, e.prefix)
		}
		if len(lines) == 1 {
			return lines[0]
		}
	}
	return text
}

func (e *environment) oldSecrets() []string {
	list, path := e.list("OLD_SECRETS"), e.text("OLD_SECRETS_FILE")
	switch {
	case list != nil && path != "":
		e.fault("OLD_SECRETS_FILE", "is set beside %sOLD_SECRETS: set one of them", e.prefix)
	case path != "":
		return e.lines("OLD_SECRETS_FILE", path)
	}
	return list
}

// secretBytesMax is more than any file of secrets has.
const secretBytesMax = 64 << 10

// guests reads a file of names and rights.
func (e *environment) guests() map[string]string {
	path := e.text("TLS_GUESTS_FILE")
	if path == "" {
		return nil
	}
	rights := map[string]string{}
	for _, line := range e.lines("TLS_GUESTS_FILE", path) {
		name, right, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "#"):
		case right == "":
			e.fault("TLS_GUESTS_FILE", "%q in %s names no right: write a name and a right, as in "+
				"\"cron.internal lock cron/*\"", line, path)
		default:
			rights[name] += right + "\n"
		}
	}
	return rights
}

// loose notes a file of secrets that others may read or change.
func (e *environment) loose(path string, info os.FileInfo) {
	if credentials.OpenToOthers(info) {
		e.warn = append(e.warn, fmt.Sprintf("the file %s may be read or changed by others (mode %#o): use chmod "+
			"600, or defaultMode: 0440 in Kubernetes", path, info.Mode().Perm()))
	}
}

// lines reads the lines of a file of secrets, without white space around them. A file without any is a mistake: it is most likely not
// filled yet. No error holds any of it.
func (e *environment) lines(suffix, path string) []string {
	info, err := os.Stat(path)
	if err != nil {
		e.fault(suffix, "%v", err)
		return nil
	}
	if !info.Mode().IsRegular() { // to read anything else may never end
		e.fault(suffix, "%s is not a regular file", path)
		return nil
	}
	e.loose(path, info)
	file, err := os.Open(path)
	if err != nil {
		e.fault(suffix, "%v", err)
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, secretBytesMax+1))
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	switch {
	case err != nil:
		e.fault(suffix, "%v", err)
	case len(text) > secretBytesMax:
		e.fault(suffix, "%s has more than %d bytes", path, secretBytesMax)
	case len(lines) == 0:
		e.fault(suffix, "%s is empty", path)
	default:
		return lines
	}
	return nil
}
