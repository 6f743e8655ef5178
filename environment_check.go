package mortise

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// check says by variable what Start would say by field, as far as it can be said of one field alone: what the program adds to the Config
// is not known yet.
func (e *environment) check(c Config) {
	secret, old := "SECRET", "OLD_SECRETS"
	if e.values["SECRET_FILE"] != "" {
		secret = "SECRET_FILE"
	}
	if e.values["OLD_SECRETS_FILE"] != "" {
		old = "OLD_SECRETS_FILE"
	}
	full := c.withDefaults()
	var wrong complaints
	wrong.checkEach(full)
	if c.Secret != "" {
		if _, err := full.credentials(nil, nil); err != nil {
			wrong = append(wrong, err)
		}
	}
	names := strings.NewReplacer(
		"Config.SessionTTL", e.prefix+"SESSION_TTL", "Config.OldSecrets", e.prefix+old, "Config.Secret", e.prefix+secret, "Config.Name", e.prefix+"NAME",
		"Config.Cluster", e.prefix+"CLUSTER", "Config.Bind", e.prefix+"BIND", "Config.Advertise", e.prefix+"ADVERTISE", "Config.Join", e.prefix+"JOIN",
		"Config.Replicas", e.prefix+"REPLICAS", "Config.Founders", e.prefix+"FOUNDERS", "Config.Voters", e.prefix+"VOTERS", "Config.Zone", e.prefix+"ZONE",
		"Config.Dir", e.prefix+"DIR", "Config.Grace", e.prefix+"GRACE", "Config.TLSPeers", e.prefix+"TLS_PEERS", "Config.TLSGuests", e.prefix+"TLS_GUESTS_FILE",
		"Config.Dir", e.prefix+"DIR", "Config.Grace", e.prefix+"GRACE",
		"Config.MaxSessionBytes", e.prefix+"MAX_SESSION_BYTES", "Config.MaxGroupBytes", e.prefix+"MAX_GROUP_BYTES",
	)
	for _, err := range wrong {
		e.wrong = append(e.wrong, errors.New(names.Replace(err.Error())))
	}
	files := map[string]string{"TLS_CERT_FILE": c.TLSFiles.Cert, "TLS_KEY_FILE": c.TLSFiles.Key, "TLS_CA_FILE": c.TLSFiles.CA}
	for _, suffix := range [...]string{"TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE"} {
		if files[suffix] == "" && c.TLSFiles != (TLSFiles{}) {
			e.fault(suffix, "is not set, though other variables for TLS are: certificate, key and authorities belong together")
		}
	}
}

// serviceVariables are those that Kubernetes and Docker add for services: for one called orders-lock, and for one called
// orders-lock-web too.
const serviceVariables = `^(.*_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`

// unknown notes every variable with the prefix that none of ours has asked for. It names no value: that may be a secret under a misspelt
// name.
func (e *environment) unknown() {
	service := regexp.MustCompile(serviceVariables)
	var names []string
	for suffix := range e.values {
		if !slices.Contains(e.known, suffix) && !service.MatchString(suffix) {
			names = append(names, suffix)
		}
	}
	slices.Sort(names)
	for _, suffix := range names {
		if near := e.near(suffix); near != "" {
			e.fault(suffix, "there is no such setting: is %s%s meant?", e.prefix, near)
		} else {
			e.fault(suffix, "there is no such setting; there are %s", strings.Join(slices.Sorted(slices.Values(e.known)), ", "))
		}
	}
}

// near returns the known name that is most like a misspelt one, if any is at all.
func (e *environment) near(suffix string) string {
	best, least := "", 3
	for _, name := range e.known {
		d := distance(strings.ToUpper(suffix), name)
		if strings.ReplaceAll(strings.ToUpper(suffix), "_", "") == strings.ReplaceAll(name, "_", "") {
			d = 0
		}
		if d < least && d < len(name)-1 {
			best, least = name, d
		}
	}
	return best
}

// distance counts the bytes that have to be put in, taken out or changed to make one text of the other.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a) // like none of ours
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = min(diagonal, row[j+1], row[j]) + 1
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
