package mortise

import (
	"time"

	"github.com/mortise-lock/mortise/internal/credentials"
)

// credentials makes what the configured kind of security stands on, or nil for plain text. Its errors name the field.
func (c Config) credentials(wall func() time.Time, random func([]byte)) (*credentials.Source, error) {
	switch {
	case c.Secret != "":
		return credentials.FromSecret(credentials.SecretConfig{
			Secret: c.Secret, Old: c.OldSecrets, Cluster: c.Cluster, Name: c.Name, Now: wall, Random: random,
		})
	case c.TLS != nil:
		return credentials.FromTLS(c.TLS)
	case c.TLSFiles != TLSFiles{}:
		return credentials.FromFiles(credentials.FilesConfig{
			CertFile: c.TLSFiles.Cert, KeyFile: c.TLSFiles.Key, CAFile: c.TLSFiles.CA, ServerName: c.TLSFiles.ServerName, Logger: c.Logger, Now: wall,
		})
	}
	return nil, nil
}
