// Command go-control-plane serves resources that were saved from another ADS server, from go-control-plane's linear
// caches, and changes one of them when it is asked to:
//
//	GET /EDS?mark=A   the first endpoint of the service's assignment gets the address A
//	GET /RDS?mark=A   the service's first route gets one more match: the header x-mark is A
//
// It is what `npm run bench:push` measures beside pilot-discovery: the same resources, made beforehand.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	_ "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

var (
	adsAddress  = flag.String("ads", "127.0.0.1:0", "where ADS is served")
	httpAddress = flag.String("http", "127.0.0.1:0", "where changes are asked for")
	folder      = flag.String("resources", "", "folder with CDS.bin, EDS.bin, LDS.bin, RDS.bin: a DiscoveryResponse each")
	host        = flag.String("host", "", "host of the service that changes")
)

var typeURLs = map[string]string{
	"CDS": resource.ClusterType, "EDS": resource.EndpointType, "LDS": resource.ListenerType, "RDS": resource.RouteType,
}

// store holds the resources by kind and name, and a cache of each kind.
type store struct {
	mutex     sync.Mutex
	resources map[string]map[string]types.Resource
	caches    map[string]*cache.LinearCache
}

func load() (*store, error) {
	s := &store{resources: map[string]map[string]types.Resource{}, caches: map[string]*cache.LinearCache{}}
	for kind, typeURL := range typeURLs {
		data, err := os.ReadFile(filepath.Join(*folder, kind+".bin"))
		if err != nil {
			return nil, err
		}
		response := &discoveryv3.DiscoveryResponse{}
		if err := proto.Unmarshal(data, response); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		byName := map[string]types.Resource{}
		for _, packed := range response.Resources {
			message, err := packed.UnmarshalNew()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", kind, err)
			}
			byName[cache.GetResourceName(message)] = message
		}
		s.resources[kind] = byName
		s.caches[kind] = cache.NewLinearCache(typeURL, cache.WithInitialResources(byName))
	}
	return s, nil
}

// change replaces a resource by a copy that was edited: the cache's readers keep theirs.
func (s *store) change(kind, name string, edit func(message proto.Message)) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	message, found := s.resources[kind][name]
	if !found {
		return fmt.Errorf("no %s resource %s", kind, name)
	}
	edited := proto.Clone(message)
	edit(edited)
	return s.caches[kind].UpdateResource(name, edited)
}

func (s *store) changeEndpoint(mark string) error {
	for name := range s.resources["EDS"] {
		if !strings.HasSuffix(name, "||"+*host) {
			continue
		}
		return s.change("EDS", name, func(message proto.Message) {
			first := message.(*endpointv3.ClusterLoadAssignment).Endpoints[0].LbEndpoints[0]
			first.GetEndpoint().Address.GetSocketAddress().Address = mark
		})
	}
	return fmt.Errorf("no endpoints of %s", *host)
}

func (s *store) changeRoute(mark string) error {
	for name, message := range s.resources["RDS"] {
		for index, virtualHost := range message.(*routev3.RouteConfiguration).VirtualHosts {
			if !contains(virtualHost.Domains, *host) {
				continue
			}
			return s.change("RDS", name, func(message proto.Message) {
				match := message.(*routev3.RouteConfiguration).VirtualHosts[index].Routes[0].Match
				match.Headers = append(match.Headers, &routev3.HeaderMatcher{
					Name: "x-mark",
					HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{
						MatchPattern: &matcherv3.StringMatcher_Exact{Exact: mark},
					}},
				})
			})
		}
	}
	return fmt.Errorf("no route to %s", *host)
}

func contains(texts []string, text string) bool {
	for _, each := range texts {
		if each == text {
			return true
		}
	}
	return false
}

func (s *store) handle(path string, change func(mark string) error) {
	http.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		// The change goes on after the answer: whoever asked is not kept waiting for the push.
		go func() {
			if err := change(r.FormValue("mark")); err != nil {
				log.Fatal(err)
			}
		}()
		fmt.Fprintln(w, "ok")
	})
}

func run() error {
	s, err := load()
	if err != nil {
		return err
	}
	mux := &cache.MuxCache{
		Classify:      func(r *cache.Request) string { return r.GetTypeUrl() },
		ClassifyDelta: func(r *cache.DeltaRequest) string { return r.GetTypeUrl() },
		Caches:        map[string]cache.Cache{},
	}
	for kind, typeURL := range typeURLs {
		mux.Caches[typeURL] = s.caches[kind]
	}
	s.handle("/EDS", s.changeEndpoint)
	s.handle("/RDS", s.changeRoute)
	grpcServer := grpc.NewServer(grpc.MaxConcurrentStreams(100_000), grpc.MaxRecvMsgSize(64<<20))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(grpcServer, server.NewServer(context.Background(), mux, nil))
	ads, err := net.Listen("tcp", *adsAddress)
	if err != nil {
		return err
	}
	changes, err := net.Listen("tcp", *httpAddress)
	if err != nil {
		return err
	}
	failed := make(chan error)
	go func() { failed <- http.Serve(changes, nil) }()
	go func() { failed <- grpcServer.Serve(ads) }()
	fmt.Println("ready")
	return <-failed
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
