package console

import (
	"net/url"

	"github.com/mortise-lock/mortise"
)

// linkConsoles sets the URL of the console of each instance, apart from this one and from guests.
// If an instance is listed twice in known, the later entry counts. A nil link sets none.
func linkConsoles(zones []zone, known []mortise.Member, link func(mortise.Member) string) {
	if link == nil {
		return
	}
	byID := map[string]mortise.Member{}
	for _, m := range known {
		byID[m.Instance] = m
	}
	for _, z := range zones {
		for i := range z.Members {
			if m, ok := byID[z.Members[i].ID]; ok && !z.Members[i].Self && m.Tier != mortise.TierGuest {
				z.Members[i].Console = safeLink(link(m))
			}
		}
	}
}

// safeLink returns a URL that a link of the page may have, or "".
func safeLink(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" {
		return ""
	}
	return u.String()
}
