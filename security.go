package mortise

import (
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/credentials"
)

// credentials makes what the configured kind of security stands on, or nil for plain text. Its
// errors name the field.
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
			CertFile: c.TLSFiles.Cert, KeyFile: c.TLSFiles.Key, CAFile: c.TLSFiles.CA, ServerName: c.TLSFiles.ServerName, Names: names,
			Logger: c.Logger, Now: wall,
		})
	}
	return nil, nil
}

// mayStart reports why an instance with these credentials cannot be started: a guest cannot at all,
// and a member neither founds nor votes.
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
		return fmt.Errorf("Config.%s: %w (it is for %q)", field, ErrGuestSecret, own.Name)
	case own.Tier != credentials.Member:
		return nil
	case c.Dir != "":
		return fmt.Errorf("Config.Dir: is set beside a member's secret (for %q): a member has no replica to keep: "+
			"leave it out", own.Name)
	case c.Replicas != 0:
		return fmt.Errorf("Config.Replicas: is set beside a member's secret (for %q): a group that is founded "+
			"by Replicas needs the root secret on every instance; use Founders", own.Name)
	case slices.Contains(c.Founders, c.Name):
		return fmt.Errorf("Config.Founders: names this instance, %q, which has a member's secret (for %q): "+
			"founders need the root secret", c.Name, own.Name)
	case c.alone():
		return fmt.Errorf("Config.Join: is empty, and a member's secret (for %q) only joins others: list where "+
			"they are", own.Name)
	}
	return nil
}
