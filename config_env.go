package mortise

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/mortise-lock/mortise/internal/variables"
)

// ConfigFromEnv reads a Config from environment variables. The variable of a field has the prefix,
// an underscore, and the name of the field in upper case with underscores between its words: with
// the prefix ORDERS_LOCK, SessionTTL is read from ORDERS_LOCK_SESSION_TTL. The items of a list are
// separated by commas. A duration has the form 10s or 1m, a number of bytes 67108864, 64MiB or
// 1GiB, and a bool is true or false. Some variables have a form or a name of their own:
//
//	ORDERS_LOCK_ADVERTISE        an IP address alone gets the port of Bind
//	ORDERS_LOCK_GRACE            none means no grace
//	ORDERS_LOCK_MAX_WAITING      as orders/=100,reports/=5
//	ORDERS_LOCK_SECRET_FILE      a file that holds only Secret, with or without a final newline
//	ORDERS_LOCK_OLD_SECRETS_FILE a file that holds OldSecrets, one per line
//	ORDERS_LOCK_TLS_CERT_FILE    TLSFiles.Cert; likewise TLS_KEY_FILE, TLS_CA_FILE
//	ORDERS_LOCK_TLS_GUESTS_FILE  a file that holds TLSGuests, a name and one right per line
//
// A line of the file TLS_GUESTS_FILE has the form "cron.internal lock cron/*". A line that begins
// with # is a comment. A name may have several lines.
//
// If other users may read or write a file of secrets, the file is used, and Start logs a warning
// that names it. There is no warning if the file belongs to root and no user outside of its group
// may read it, as with the files of Kubernetes and systemd.
//
// White space around values and around the parts of a list is ignored, and an empty variable counts
// as unset. JoinFunc, TLS, History, Hooks and Logger have no variables: set them in the result.
// Neither ConfigFromEnv nor Start reads anything else from the environment.
//
// The error names all mistakes, each with its variable. An unknown variable with the prefix is a
// mistake, because it is most likely misspelt. Variables that Kubernetes and Docker add for a
// service whose name is the prefix (ORDERS_LOCK_SERVICE_HOST, ORDERS_LOCK_PORT_7947_TCP) are
// ignored. Rules that involve several fields are checked by Start. No error contains a secret.
func ConfigFromEnv(prefix string) (Config, error) {
	return configFromEnv(prefix, os.Environ())
}

type environment struct{ *variables.Reader }

func configFromEnv(prefix string, environ []string) (Config, error) {
	reader, ok := variables.New(prefix, environ)
	if !ok {
		return Config{}, fmt.Errorf("mortise: ConfigFromEnv: the prefix %q cannot begin the name of a variable: "+
			"use one like ORDERS_LOCK", strings.TrimSuffix(prefix, "_"))
	}
	e := environment{reader}
	c := Config{
		Name: e.Text("NAME"), Cluster: e.Text("CLUSTER"), Bind: e.Text("BIND"), Join: e.List("JOIN"),
		Replicas: e.Number("REPLICAS"),
		Founders: e.List("FOUNDERS"), Voters: e.Number("VOTERS"), Zone: e.Text("ZONE"), Dir: e.Text("DIR"),
		RunDir: e.Text("RUN_DIR"), DirFreeBytes: e.Bytes("DIR_FREE_BYTES"), SessionTTL: e.Duration("SESSION_TTL", false),
		Grace: e.Duration("GRACE", true), Insecure: e.Flag("INSECURE"),
		MaxSessionBytes: e.Bytes("MAX_SESSION_BYTES"), MaxGroupBytes: e.Bytes("MAX_GROUP_BYTES"),
		MaxWaiting:  e.maxWaiting(),
		StickyLocks: e.Number("STICKY_LOCKS"), StickyUnused: e.Duration("STICKY_UNUSED", false),
		TLSFiles: TLSFiles{Cert: e.Text("TLS_CERT_FILE"), Key: e.Text("TLS_KEY_FILE"), CA: e.Text("TLS_CA_FILE")},
		TLSPeers: e.List("TLS_PEERS"), TLSGuests: e.guests(),
	}
	c.Advertise = e.advertise(c.Bind)
	c.Secret, c.OldSecrets = e.secret(), e.oldSecrets()
	c.warnings = e.Warnings
	e.check(c)
	e.Unknown()
	if err := e.Err(); err != nil {
		return Config{}, fmt.Errorf("mortise: %w", err)
	}
	return c, nil
}

// advertise adds the port of Bind to an IP address without a port, which is what Kubernetes passes
// to a pod.
func (e environment) advertise(bind string) string {
	text := e.Text("ADVERTISE")
	ip, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return text
	}
	port := defaultPort
	if bind != "" {
		_, port, _ = net.SplitHostPort(bind)
	}
	if port == "" || port == "0" {
		e.Fault("ADVERTISE", "%q has no port, and %sBIND gives none: write host:port", text, e.Prefix)
		return ""
	}
	return net.JoinHostPort(ip.String(), port)
}

func (e environment) secret() string {
	text, path := e.Text("SECRET"), e.Text("SECRET_FILE")
	switch {
	case text != "" && path != "":
		e.Fault("SECRET_FILE", "is set together with %sSECRET: set only one of them", e.Prefix)
	case path != "":
		lines := e.Lines("SECRET_FILE", path)
		if len(lines) > 1 {
			e.Fault("SECRET_FILE", "%s has more than one line: old secrets belong in %sOLD_SECRETS_FILE", path,
				e.Prefix)
		}
		if len(lines) == 1 {
			return lines[0]
		}
	}
	return text
}

func (e environment) oldSecrets() []string {
	list, path := e.List("OLD_SECRETS"), e.Text("OLD_SECRETS_FILE")
	switch {
	case list != nil && path != "":
		e.Fault("OLD_SECRETS_FILE", "is set together with %sOLD_SECRETS: set only one of them", e.Prefix)
	case path != "":
		return e.Lines("OLD_SECRETS_FILE", path)
	}
	return list
}

func (e environment) maxWaiting() map[string]int {
	most := map[string]int{}
	for _, part := range e.List("MAX_WAITING") {
		i := strings.LastIndexByte(part, '=') // a prefix may contain the sign
		n, err := strconv.Atoi(part[i+1:])
		if i < 0 || err != nil {
			e.Fault("MAX_WAITING", "%q is not a prefix and a number: write them as in orders/=100", part)
			return nil
		}
		most[part[:i]] = n
	}
	if len(most) == 0 {
		return nil
	}
	return most
}

func (e environment) guests() map[string]string {
	path := e.Text("TLS_GUESTS_FILE")
	if path == "" {
		return nil
	}
	rights := map[string]string{}
	for _, line := range e.Lines("TLS_GUESTS_FILE", path) {
		name, right, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "#"):
		case right == "":
			e.Fault("TLS_GUESTS_FILE", "%q in %s names no right: write a name and a right, as in "+
				"\"cron.internal lock cron/*\"", line, path)
		default:
			rights[name] += right + "\n"
		}
	}
	return rights
}

// check reports mistakes that Start would report, but names the variable instead of the field.
// Start checks the rules that involve several fields.
func (e environment) check(c Config) {
	secret, old := "SECRET", "OLD_SECRETS"
	if e.Set("SECRET_FILE") {
		secret = "SECRET_FILE"
	}
	if e.Set("OLD_SECRETS_FILE") {
		old = "OLD_SECRETS_FILE"
	}
	full := c.withDefaults()
	var wrong configErrors
	wrong.checkEach(full)
	if c.Secret != "" {
		if _, err := full.credentials(nil, nil); err != nil {
			wrong = append(wrong, err)
		}
	}
	names := strings.NewReplacer(
		"Config.SessionTTL", e.Prefix+"SESSION_TTL", "Config.OldSecrets", e.Prefix+old, "Config.Secret",
		e.Prefix+secret, "Config.Name", e.Prefix+"NAME",
		"Config.Cluster", e.Prefix+"CLUSTER", "Config.Bind", e.Prefix+"BIND", "Config.Advertise",
		e.Prefix+"ADVERTISE", "Config.Join", e.Prefix+"JOIN",
		"Config.Replicas", e.Prefix+"REPLICAS", "Config.Founders", e.Prefix+"FOUNDERS", "Config.Voters",
		e.Prefix+"VOTERS", "Config.Zone", e.Prefix+"ZONE",
		"Config.Dir", e.Prefix+"DIR", "Config.RunDir", e.Prefix+"RUN_DIR",
		"Config.Grace", e.Prefix+"GRACE", "Config.TLSPeers", e.Prefix+"TLS_PEERS",
		"Config.TLSGuests", e.Prefix+"TLS_GUESTS_FILE",
		"Config.MaxSessionBytes", e.Prefix+"MAX_SESSION_BYTES", "Config.MaxGroupBytes", e.Prefix+"MAX_GROUP_BYTES",
		"Config.MaxWaiting", e.Prefix+"MAX_WAITING", "Config.StickyUnused", e.Prefix+"STICKY_UNUSED",
	)
	for _, err := range wrong {
		e.Add(errors.New(names.Replace(err.Error())))
	}
	files := map[string]string{"TLS_CERT_FILE": c.TLSFiles.Cert, "TLS_KEY_FILE": c.TLSFiles.Key,
		"TLS_CA_FILE": c.TLSFiles.CA}
	for _, suffix := range [...]string{"TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE"} {
		if files[suffix] == "" && c.TLSFiles != (TLSFiles{}) {
			e.Fault(suffix, "is not set, though other variables for TLS are: certificate, key and authorities belong together")
		}
	}
}
