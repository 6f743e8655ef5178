package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

// FromTLS takes the user's own configuration, for both sides. It is cloned; its callbacks stay in use and must be safe for concurrent
// use. Certificates that are renewed while the node runs come from GetCertificate (accepted connections) and GetClientCertificate (dialed
// ones). TLS 1.3, client certificates and full handshakes are forced, in what GetConfigForClient returns too. If ServerName is
// empty, the certificate of a peer must carry the host that is dialed; set it to a name that all certificates carry where
// addresses change. The error names every mistake, as a field of Config.TLS.
func FromTLS(config *tls.Config) (*Source, error) {
	if config == nil {
		return nil, errors.New("Config.TLS: is nil")
	}
	if err := check(config); err != nil {
		return nil, err
	}
	template := harden(config.Clone())
	if choose := config.GetConfigForClient; choose != nil {
		template.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if err != nil || chosen == nil {
				return nil, err
			}
			if err := errors.Join(serverFaults(chosen)...); err != nil {
				return nil, fmt.Errorf("what GetConfigForClient returned: %w", err)
			}
			return harden(chosen.Clone()), nil
		}
	}
	return &Source{server: template.Clone, client: template.Clone, about: "TLS from Config.TLS"}, nil
}

// check reports everything that keeps two nodes with this configuration from proving themselves to each other.
func check(c *tls.Config) error {
	errs := serverFaults(c)
	if len(c.Certificates) == 0 && c.GetClientCertificate == nil {
		errs = append(errs, errors.New("Config.TLS: no certificate for dialed connections: set Certificates or GetClientCertificate (a node proves itself on both sides)"))
	}
	if c.RootCAs == nil || c.RootCAs.Equal(x509.NewCertPool()) {
		errs = append(errs, errors.New("Config.TLS: RootCAs is empty: set it to the authority of the instances' certificates (the system's authorities would let strangers in)"))
	}
	if c.InsecureSkipVerify {
		errs = append(errs, errors.New("Config.TLS: InsecureSkipVerify is set: a node must know whom it dials; if only names differ, set ServerName to one that all certificates carry"))
	}
	if len(c.Certificates) == 1 && c.GetCertificate == nil && c.GetClientCertificate == nil {
		if err := checkUsage(&c.Certificates[0]); err != nil {
			errs = append(errs, fmt.Errorf("Config.TLS: %w", err))
		}
	}
	return errors.Join(errs...)
}

// serverFaults is the part of check that concerns accepted connections.
func serverFaults(c *tls.Config) []error {
	var errs []error
	if len(c.Certificates) == 0 && c.GetCertificate == nil {
		errs = append(errs, errors.New("Config.TLS: no certificate for accepted connections: set Certificates or GetCertificate"))
	}
	for i, pair := range c.Certificates {
		if len(pair.Certificate) == 0 || pair.PrivateKey == nil {
			errs = append(errs, fmt.Errorf("Config.TLS: Certificates[%d] lacks its certificate or its private key: load it with tls.LoadX509KeyPair", i))
		}
	}
	if c.ClientCAs == nil || c.ClientCAs.Equal(x509.NewCertPool()) {
		errs = append(errs, errors.New("Config.TLS: ClientCAs is empty: set it to the authority of the instances' certificates"))
	}
	if c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS13 {
		errs = append(errs, errors.New("Config.TLS: MaxVersion is below TLS 1.3: leave it zero"))
	}
	return errs
}

// checkUsage finds the mistake that otherwise shows on one side only: a certificate that is good for a server and not for a client.
func checkUsage(pair *tls.Certificate) error {
	leaf := pair.Leaf
	if leaf == nil {
		if len(pair.Certificate) == 0 {
			return nil // reported already
		}
		var err error
		if leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return fmt.Errorf("the certificate cannot be read: %w", err)
		}
	}
	usages := leaf.ExtKeyUsage
	if len(usages)+len(leaf.UnknownExtKeyUsage) == 0 || slices.Contains(usages, x509.ExtKeyUsageAny) {
		return nil
	}
	if !slices.Contains(usages, x509.ExtKeyUsageServerAuth) || !slices.Contains(usages, x509.ExtKeyUsageClientAuth) {
		return errors.New("the certificate is not for both sides: issue it with the extended key usages serverAuth and clientAuth, since every instance dials and is dialed")
	}
	return nil
}
