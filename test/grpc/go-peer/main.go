// A client and a server of gRPC that are configured over xDS, for tests. One JSON object a line, in and out.
//
//	grpc-peer client                   calls what each line of standard input asks for
//	grpc-peer server ADDRESS NAME      serves the health service; without GRPC_XDS_BOOTSTRAP plain gRPC
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	xdscreds "google.golang.org/grpc/credentials/xds"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
)

type order struct {
	ID        int               `json:"id"`
	Target    string            `json:"target"`
	Headers   map[string]string `json:"headers"`
	TimeoutMs int               `json:"timeoutMs"`
	// Credentials that the control plane chooses; else plaintext.
	Secure bool `json:"secure"`
}

type outcome struct {
	ID      int    `json:"id"`
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	Backend string `json:"backend,omitempty"`
	Peer    string `json:"peer,omitempty"`
	Caller  string `json:"caller,omitempty"`
	Serial  string `json:"serial,omitempty"`
	Ms      int64  `json:"ms"`
}

var printing sync.Mutex

func say(value any) {
	line, _ := json.Marshal(value)
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(line))
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "client" {
		runClient()
		return
	}
	if len(os.Args) == 4 && os.Args[1] == "server" {
		runServer(os.Args[2], os.Args[3])
		return
	}
	fmt.Fprintln(os.Stderr, "usage: grpc-peer client | grpc-peer server ADDRESS NAME")
	os.Exit(2)
}

func clientCredentials(secure bool) credentials.TransportCredentials {
	if !secure {
		return insecure.NewCredentials()
	}
	made, err := xdscreds.NewClientCredentials(xdscreds.ClientOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		panic(err)
	}
	return made
}

func runClient() {
	channels := map[string]*grpc.ClientConn{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var asked order
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		key := fmt.Sprint(asked.Target, asked.Secure)
		channel := channels[key]
		if channel == nil {
			var err error
			channel, err = grpc.NewClient(asked.Target, grpc.WithTransportCredentials(clientCredentials(asked.Secure)))
			if err != nil {
				say(outcome{ID: asked.ID, Code: "NewClient", Message: err.Error()})
				continue
			}
			channels[key] = channel
		}
		go call(channel, asked)
	}
}

func call(channel *grpc.ClientConn, asked order) {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(asked.TimeoutMs)*time.Millisecond)
	defer cancel()
	for name, value := range asked.Headers {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	var header metadata.MD
	var from peer.Peer
	client := grpc_health_v1.NewHealthClient(channel)
	_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header), grpc.Peer(&from))
	got := status.Convert(err)
	said := outcome{ID: asked.ID, Code: got.Code().String(), Message: got.Message(), Ms: time.Since(begun).Milliseconds()}
	if names := header.Get("x-backend"); len(names) > 0 {
		said.Backend = names[0]
	}
	if callers := header.Get("x-caller"); len(callers) > 0 {
		said.Caller = callers[0]
	}
	said.Peer, said.Serial = identityOf(&from)
	say(said)
}

// The identity and the serial number in the certificate of the other side.
func identityOf(from *peer.Peer) (string, string) {
	info, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return "", ""
	}
	leaf := info.State.PeerCertificates[0]
	if len(leaf.URIs) == 0 {
		return "", leaf.SerialNumber.Text(16)
	}
	return leaf.URIs[0].String(), leaf.SerialNumber.Text(16)
}

type health struct {
	grpc_health_v1.UnimplementedHealthServer
	name   string
	mutex  sync.Mutex
	failed map[string]int
}

// Check fails as often as the header x-fail says, for each value of x-call.
func (server *health) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	caller := ""
	if from, ok := peer.FromContext(ctx); ok {
		caller, _ = identityOf(from)
	}
	asked, _ := metadata.FromIncomingContext(ctx)
	if fail, id := asked.Get("x-fail"), asked.Get("x-call"); len(fail) > 0 && len(id) > 0 {
		server.mutex.Lock()
		defer server.mutex.Unlock()
		server.failed[id[0]]++
		if fmt.Sprint(server.failed[id[0]]) <= fail[0] {
			return nil, status.Error(14, "as asked")
		}
	}
	_ = grpc.SetHeader(ctx, metadata.Pairs("x-backend", server.name, "x-caller", caller))
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
}

type grpcServer interface {
	grpc.ServiceRegistrar
	Serve(net.Listener) error
}

func runServer(address, name string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		panic(err)
	}
	var server grpcServer = grpc.NewServer()
	if os.Getenv("GRPC_XDS_BOOTSTRAP") != "" {
		secured, err := xdscreds.NewServerCredentials(xdscreds.ServerOptions{FallbackCreds: insecure.NewCredentials()})
		if err != nil {
			panic(err)
		}
		server, err = xds.NewGRPCServer(grpc.Creds(secured), xds.ServingModeCallback(func(_ net.Addr, mode xds.ServingModeChangeArgs) {
			reason := ""
			if mode.Err != nil {
				reason = mode.Err.Error()
			}
			say(map[string]string{"mode": mode.Mode.String(), "reason": reason})
		}))
		if err != nil {
			panic(err)
		}
	} else {
		say(map[string]string{"mode": "SERVING"})
	}
	grpc_health_v1.RegisterHealthServer(server, &health{name: name, failed: map[string]int{}})
	if err := server.Serve(listener); err != nil {
		panic(err)
	}
}
