package variables

import (
	"regexp"
	"slices"
	"strings"
)

// serviceVariables matches the suffixes of the variables that Kubernetes and Docker set for
// services. With the prefix ORDERS_LOCK, such variables may belong to a service orders-lock or
// orders-lock-web.
const serviceVariables = `^(.*_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|` +
	`PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`

// Unknown records an error for every variable whose name begins with the prefix, but which was not
// read. It ignores the variables that match serviceVariables. The error omits the value, which may
// be a secret.
func (r *Reader) Unknown() {
	service := regexp.MustCompile(serviceVariables)
	var names []string
	for suffix := range r.values {
		if !slices.Contains(r.known, suffix) && !service.MatchString(suffix) {
			names = append(names, suffix)
		}
	}
	slices.Sort(names)
	for _, suffix := range names {
		if near := r.near(suffix); near != "" {
			r.Fault(suffix, "there is no such setting: is %s%s meant?", r.Prefix, near)
		} else {
			r.Fault(suffix, "there is no such setting; there are %s",
				strings.Join(slices.Sorted(slices.Values(r.known)), ", "))
		}
	}
}

// near returns the known name that is most similar to a misspelt one, or "" if none is similar.
func (r *Reader) near(suffix string) string {
	best, least := "", 3
	for _, name := range r.known {
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

func distance(a, b string) int {
	if len(a) > 64 {
		return len(a) // no known name is that long
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
