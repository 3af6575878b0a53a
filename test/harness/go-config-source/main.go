// A source of configuration over xDS, with the messages of istio.io/api and Envoy's own stubs: what it sends was encoded by nothing of ours.
// Commands come by standard input, one a line: "put NAMESPACE/NAME HOST PORT", "fill COUNT", "delete NAMESPACE/NAME", "empty", "close", "refuse on|off",
// "nodelta on|off". What clients send goes to standard output as JSON lines.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	mcp "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

const served = "networking.istio.io/v1/ServiceEntry"

type resource struct {
	version string
	any     *anypb.Any
}

type source struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	mu       sync.Mutex
	objects  map[string]resource
	changed  map[chan struct{}]bool
	closed   chan struct{}
	count    int
	refuses  bool
	hasDelta bool
}

func (s *source) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	for c := range s.changed {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (s *source) enter() (chan struct{}, chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses {
		return nil, nil, grpcstatus.Error(codes.PermissionDenied, "refused by the test")
	}
	c := make(chan struct{}, 1)
	s.changed[c] = true
	return c, s.closed, nil
}

func (s *source) leave(c chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.changed, c)
}

func (s *source) snapshot(typeURL string) (map[string]resource, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	all := map[string]resource{}
	if typeURL == served {
		for name, one := range s.objects {
			all[name] = one
		}
	}
	return all, strconv.Itoa(s.count)
}

func told(typeURL, nonce string, node *core.Node, detail *status.Status) {
	line, _ := json.Marshal(map[string]string{"type": typeURL, "nonce": nonce, "node": node.GetId(), "error": detail.GetMessage()})
	fmt.Println(string(line))
}

func (s *source) StreamAggregatedResources(stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	changed, closed, err := s.enter()
	if err != nil {
		return err
	}
	defer s.leave(changed)
	requests := make(chan *discovery.DiscoveryRequest)
	go func() {
		defer close(requests)
		for {
			request, err := stream.Recv()
			if err != nil {
				return
			}
			requests <- request
		}
	}()
	watched := map[string]bool{}
	send := func(typeURL string) error {
		objects, nonce := s.snapshot(typeURL)
		response := &discovery.DiscoveryResponse{TypeUrl: typeURL, VersionInfo: nonce, Nonce: nonce}
		for _, one := range objects {
			response.Resources = append(response.Resources, one.any)
		}
		return stream.Send(response)
	}
	for {
		select {
		case request, ok := <-requests:
			if !ok {
				return nil
			}
			told(request.TypeUrl, request.ResponseNonce, request.Node, request.ErrorDetail)
			if watched[request.TypeUrl] {
				continue
			}
			watched[request.TypeUrl] = true
			if err := send(request.TypeUrl); err != nil {
				return err
			}
		case <-changed:
			if watched[served] {
				if err := send(served); err != nil {
					return err
				}
			}
		case <-closed:
			return grpcstatus.Error(codes.Unavailable, "closed by the test")
		}
	}
}

func (s *source) DeltaAggregatedResources(stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	if !s.hasDelta {
		return grpcstatus.Error(codes.Unimplemented, "no delta")
	}
	changed, closed, err := s.enter()
	if err != nil {
		return err
	}
	defer s.leave(changed)
	requests := make(chan *discovery.DeltaDiscoveryRequest)
	go func() {
		defer close(requests)
		for {
			request, err := stream.Recv()
			if err != nil {
				return
			}
			requests <- request
		}
	}()
	watched := map[string]map[string]string{}
	send := func(typeURL string) error {
		objects, nonce := s.snapshot(typeURL)
		response := &discovery.DeltaDiscoveryResponse{TypeUrl: typeURL, SystemVersionInfo: nonce, Nonce: nonce}
		had := watched[typeURL]
		for name, one := range objects {
			if had[name] != one.version {
				response.Resources = append(response.Resources, &discovery.Resource{Name: name, Version: one.version, Resource: one.any})
			}
		}
		for name := range had {
			if _, ok := objects[name]; !ok {
				response.RemovedResources = append(response.RemovedResources, name)
			}
		}
		now := map[string]string{}
		for name, one := range objects {
			now[name] = one.version
		}
		watched[typeURL] = now
		return stream.Send(response)
	}
	for {
		select {
		case request, ok := <-requests:
			if !ok {
				return nil
			}
			told(request.TypeUrl, request.ResponseNonce, request.Node, request.ErrorDetail)
			if watched[request.TypeUrl] != nil {
				continue
			}
			watched[request.TypeUrl] = map[string]string{}
			for name, version := range request.InitialResourceVersions {
				watched[request.TypeUrl][name] = version
			}
			if err := send(request.TypeUrl); err != nil {
				return err
			}
		case <-changed:
			if watched[served] != nil {
				if err := send(served); err != nil {
					return err
				}
			}
		case <-closed:
			return grpcstatus.Error(codes.Unavailable, "closed by the test")
		}
	}
}

func (s *source) put(name, host string, port int) {
	body, _ := anypb.New(&networking.ServiceEntry{
		Hosts:      []string{host},
		Ports:      []*networking.ServicePort{{Number: uint32(port), Name: "http", Protocol: "HTTP"}},
		Resolution: networking.ServiceEntry_STATIC,
		Endpoints:  []*networking.WorkloadEntry{{Address: "10.1.1.1"}},
	})
	any, _ := anypb.New(&mcp.Resource{Metadata: &mcp.Metadata{Name: name, Version: strconv.Itoa(s.count)}, Body: body})
	s.count++
	s.objects[name] = resource{version: strconv.Itoa(s.count), any: any}
}

func main() {
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s := &source{objects: map[string]resource{}, changed: map[chan struct{}]bool{}, closed: make(chan struct{}), hasDelta: true}
	server := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	fmt.Printf("{\"address\":%q}\n", listener.Addr())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "put":
			port, _ := strconv.Atoi(words[3])
			s.set(func() { s.put(words[1], words[2], port) })
		case "fill":
			count, _ := strconv.Atoi(words[1])
			s.set(func() {
				for i := 0; i < count; i++ {
					s.put(fmt.Sprintf("shop/e%d", i), fmt.Sprintf("e%d.example.com", i), 80)
				}
			})
		case "delete":
			s.set(func() { delete(s.objects, words[1]) })
		case "empty":
			s.set(func() { s.objects = map[string]resource{} })
		case "close":
			s.mu.Lock()
			close(s.closed)
			s.closed = make(chan struct{})
			s.mu.Unlock()
		case "refuse":
			s.set(func() { s.refuses = words[1] == "on" })
		case "nodelta":
			s.set(func() { s.hasDelta = words[1] != "on" })
		}
	}
}
