// A workload of strangers: it asks for its certificate with gRPC of Go and the messages of istio.io/api, judges what it gets with
// go-spiffe, and asks again by the certificate itself.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	security "istio.io/api/security/v1alpha1"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	address := flag.String("address", "", "of the port with TLS")
	server := flag.String("server", "", "name in the server's certificate")
	rootFile := flag.String("roots", "", "PEM of the roots by which the server is judged")
	tokenFile := flag.String("token", "", "bearer token")
	out := flag.String("out", "", "folder for chain.pem and roots.pem")
	flag.Parse()
	roots, err := os.ReadFile(*rootFile)
	if err != nil {
		return err
	}
	token, err := os.ReadFile(*tokenFile)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	keyPEM, err := pemOfKey(key)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(roots)
	config := &tls.Config{RootCAs: pool, ServerName: *server}

	first, err := ask(*address, config, key, strings.TrimSpace(string(token)))
	if err != nil {
		return fmt.Errorf("with a token: %w", err)
	}
	id, err := judge(first, keyPEM, roots)
	if err != nil {
		return err
	}
	fmt.Println(id)

	own, err := tls.X509KeyPair([]byte(strings.Join(first[:len(first)-1], "")), keyPEM)
	if err != nil {
		return err
	}
	config.Certificates = []tls.Certificate{own}
	second, err := ask(*address, config, key, "")
	if err != nil {
		return fmt.Errorf("with the certificate: %w", err)
	}
	if id, err = judge(second, keyPEM, roots); err != nil {
		return err
	}
	fmt.Println(id)
	if err := os.WriteFile(filepath.Join(*out, "chain.pem"), []byte(strings.Join(second[:len(second)-1], "")), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*out, "roots.pem"), []byte(second[len(second)-1]), 0o600)
}

func ask(address string, config *tls.Config, key *ecdsa.PrivateKey, token string) ([]string, error) {
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, err
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	csr := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
	answer, err := security.NewIstioCertificateServiceClient(connection).CreateCertificate(ctx,
		&security.IstioCertificateRequest{Csr: string(csr), ValidityDuration: 3600})
	if err != nil {
		return nil, err
	}
	return answer.CertChain, nil
}

// judge says who the certificate makes us, if it is an X.509-SVID that leads to a root of its trust domain.
func judge(chain []string, keyPEM []byte, roots []byte) (string, error) {
	if len(chain) < 2 {
		return "", fmt.Errorf("%d certificates", len(chain))
	}
	svid, err := x509svid.Parse([]byte(strings.Join(chain[:len(chain)-1], "")), keyPEM)
	if err != nil {
		return "", err
	}
	bundle, err := x509bundle.Parse(svid.ID.TrustDomain(), roots)
	if err != nil {
		return "", err
	}
	id, _, err := x509svid.Verify(svid.Certificates, bundle)
	if err != nil {
		return "", err
	}
	other := spiffeid.RequireTrustDomainFromString("other.example")
	if _, _, err := x509svid.Verify(svid.Certificates, x509bundle.FromX509Authorities(other, bundle.X509Authorities())); err == nil {
		return "", fmt.Errorf("go-spiffe verifies it for another trust domain")
	}
	return id.String(), nil
}

func pemOfKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
