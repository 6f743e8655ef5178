package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FromTLS returns a Source for a clone of the user's own configuration and for the names of the
// accepted peers. The callbacks of the configuration must be safe for concurrent use. If
// certificates are renewed while the node runs, GetCertificate must return them for accepted
// connections, and GetClientCertificate for dialed connections. FromTLS enforces TLS 1.3, client
// certificates and full handshakes. Without names, VerifyConnection is required, and every peer
// that it accepts is an instance. The certificate of a dialed peer must then contain ServerName or,
// if ServerName is empty, the dialed host. The error lists all mistakes, with the names of the
// fields.
func FromTLS(config *tls.Config, list Names) (*Source, error) {
	if config == nil {
		return nil, errors.New("Config.TLS: is nil")
	}
	g := &provided{config: config.Clone()}
	err := check(config)
	if len(list.Peers)+len(list.Guests) > 0 || config.VerifyConnection == nil {
		var wrong error
		g.names, wrong = newNames(list, config.ServerName)
		err = errors.Join(err, wrong)
	}
	if err != nil {
		return nil, err
	}
	server := g.accepting(config)
	if choose := config.GetConfigForClient; choose != nil {
		server.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if err != nil || chosen == nil {
				return nil, err
			}
			faults := serverFaults(chosen)
			if g.names == nil && chosen.VerifyConnection == nil {
				faults = append(faults, errNoPeers)
			}
			if err := errors.Join(faults...); err != nil {
				return nil, fmt.Errorf("what GetConfigForClient returned: %w", err)
			}
			return g.accepting(chosen), nil
		}
	}
	return &Source{server: server.Clone, client: g.dialing().Clone, checker: g, about: "TLS from Config.TLS"}, nil
}

type provided struct {
	config *tls.Config
	names  *names // nil if VerifyConnection of the configuration decides
}

func (g *provided) now() time.Time {
	if g.config.Time != nil {
		return g.config.Time()
	}
	return time.Now()
}

func (g *provided) accepting(config *tls.Config) *tls.Config {
	config = harden(config.Clone())
	config.GetConfigForClient = nil
	if g.names != nil {
		config.VerifyConnection = g.names.accepts(config.VerifyConnection)
	}
	return config
}

func (g *provided) dialing() *tls.Config {
	config := harden(g.config.Clone())
	if g.names != nil {
		g.names.dials(config, g.now)
	}
	return config
}

func (g *provided) peer(state tls.ConnectionState) (Peer, error) {
	if g.names != nil {
		return g.names.peer(state, g.config.RootCAs, g.now())
	}
	if len(state.VerifiedChains) == 0 {
		return Peer{}, errUnverified
	}
	leaf, err := leafOf(state)
	if err != nil {
		return Peer{}, err
	}
	return Peer{Tier: Root, Name: strings.Join(namesOf(leaf), ", "), NotAfter: end(state.VerifiedChains)}, nil
}

// recheck checks the time and calls VerifyConnection again.
func (g *provided) recheck(state tls.ConnectionState) (err error) {
	if len(state.VerifiedChains) == 0 && g.names != nil {
		if state.VerifiedChains, err = verify(state, g.config.RootCAs, g.now(), x509.ExtKeyUsageAny); err != nil {
			return err
		}
	}
	p, err := g.peer(state)
	if err != nil {
		return err
	}
	if now := g.now(); now.After(p.NotAfter) {
		return fmt.Errorf("credentials: a certificate of the peer ended at %s, and it is %s here", stamp(p.NotAfter),
			stamp(now))
	}
	if g.config.VerifyConnection != nil {
		return g.config.VerifyConnection(state)
	}
	return nil
}

// own checks the first certificate in the configuration. It calls no callback.
func (g *provided) own() (Peer, error) {
	if g.names == nil || len(g.config.Certificates) == 0 {
		return Peer{Tier: Root}, nil
	}
	pair := g.config.Certificates[0]
	leaf, err := pair.Leaf, error(nil)
	if leaf == nil {
		leaf, err = x509.ParseCertificate(pair.Certificate[0])
	}
	if err != nil {
		return Peer{}, err
	}
	return g.names.find(leaf)
}

func check(c *tls.Config) error {
	errs := serverFaults(c)
	if len(c.Certificates) == 0 && c.GetClientCertificate == nil {
		errs = append(errs, errors.New("Config.TLS: no certificate for dialed connections: set Certificates or "+
			"GetClientCertificate (a node proves itself on both sides)"))
	}
	if c.RootCAs == nil || c.RootCAs.Equal(x509.NewCertPool()) {
		errs = append(errs, errors.New("Config.TLS: RootCAs is empty: set it to the authority of the instances' "+
			"certificates (the system's authorities would let strangers in)"))
	}
	if c.InsecureSkipVerify {
		errs = append(errs, errors.New("Config.TLS: InsecureSkipVerify is set: a node must know whom it dials; "+
			"if only names differ, set ServerName to one that all certificates carry"))
	}
	if len(c.Certificates) == 1 && c.GetCertificate == nil && c.GetClientCertificate == nil {
		if err := checkUsage(&c.Certificates[0]); err != nil {
			errs = append(errs, fmt.Errorf("Config.TLS: %w", err))
		}
	}
	return errors.Join(errs...)
}

func serverFaults(c *tls.Config) []error {
	var errs []error
	if len(c.Certificates) == 0 && c.GetCertificate == nil {
		errs = append(errs, errors.New("Config.TLS: no certificate for accepted connections: set Certificates "+
			"or GetCertificate"))
	}
	for i, pair := range c.Certificates {
		if len(pair.Certificate) == 0 || pair.PrivateKey == nil {
			errs = append(errs, fmt.Errorf("Config.TLS: Certificates[%d] lacks its certificate or its private "+
				"key: load it with tls.LoadX509KeyPair", i))
		}
	}
	if c.ClientCAs == nil || c.ClientCAs.Equal(x509.NewCertPool()) {
		errs = append(errs, errors.New("Config.TLS: ClientCAs is empty: set it to the authority of the "+
			"instances' certificates"))
	}
	if c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS13 {
		errs = append(errs, errors.New("Config.TLS: MaxVersion is below TLS 1.3: leave it zero"))
	}
	return errs
}

// checkUsage reports a certificate that is valid for a server but not for a client, because this
// mistake would appear only on one side of a connection.
func checkUsage(pair *tls.Certificate) error {
	leaf := pair.Leaf
	if leaf == nil {
		if len(pair.Certificate) == 0 {
			return nil // reported by serverFaults
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
		return errors.New("the certificate is not for both sides: issue it with the extended key usages " +
			"serverAuth and clientAuth, since every instance dials and is dialed")
	}
	return nil
}
