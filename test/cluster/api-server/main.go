// The API server of the tests: a kube-apiserver and an etcd member in one process.
//
// Usage: api-server FOLDER <flags of kube-apiserver>
//
// It ends with its standard input: whoever started it holds the other end, and a test run that was killed leaves nothing behind.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

const etcdReadyLimit = 30 * time.Second

func main() {
	if len(os.Args) < 2 {
		fail("usage: api-server FOLDER <flags of kube-apiserver>")
	}
	folder := os.Args[1]
	etcd, endpoint, err := startEtcd(folder)
	if err != nil {
		fail("etcd: " + err.Error())
	}
	if err := serveControl(filepath.Join(folder, "control.sock"), etcd); err != nil {
		fail("control: " + err.Error())
	}
	go endWithInput()
	command := app.NewAPIServerCommand()
	command.SetArgs(append([]string{"--etcd-servers=" + endpoint}, os.Args[2:]...))
	code := cli.Run(command)
	// After the API server: one whose etcd is gone was still alive half an hour later.
	etcd.Close()
	os.Exit(code)
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}

func startEtcd(folder string) (*embed.Etcd, string, error) {
	config := embed.NewConfig()
	config.Dir = filepath.Join(folder, "etcd")
	config.LogLevel = "error"
	config.UnsafeNoFsync = true
	client := url.URL{Scheme: "unix", Path: filepath.Join(folder, "etcd.sock")}
	config.ListenClientUrls = []url.URL{client}
	config.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	// A single member is never dialled by what it advertises, yet etcd refuses an address without host and port.
	config.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:2379"}}
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:2380"}
	config.AdvertisePeerUrls = []url.URL{peer}
	config.InitialCluster = config.Name + "=" + peer.String()
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, "", err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, client.String(), nil
	case err := <-etcd.Err():
		return nil, "", err
	case <-time.After(etcdReadyLimit):
		return nil, "", fmt.Errorf("not ready in %s", etcdReadyLimit)
	}
}

// serveControl listens for what a test does to the store behind the API server's back: POST /compact forgets all history.
func serveControl(path string, etcd *embed.Etcd) error {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /compact", func(answer http.ResponseWriter, request *http.Request) {
		ctx, cancel := context.WithTimeout(request.Context(), 10*time.Second)
		defer cancel()
		revision := etcd.Server.KV().Rev()
		if _, err := etcd.Server.Compact(ctx, &pb.CompactionRequest{Revision: revision, Physical: true}); err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(answer, revision)
	})
	go func() { _ = http.Serve(listener, mux) }()
	return nil
}

func endWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
}
