// Gateway API's own conformance suite against a control plane that already runs.
package suite

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1alpha2 "sigs.k8s.io/gateway-api/apis/v1alpha2"
	gatewayv1alpha3 "sigs.k8s.io/gateway-api/apis/v1alpha3"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	experimentalv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
	"sigs.k8s.io/gateway-api/conformance"
	conformancev1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

func TestConformance(t *testing.T) {
	access, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	access.QPS, access.Burst = 200, 400
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, gatewayv1.Install, gatewayv1alpha2.Install,
		gatewayv1alpha3.Install, gatewayv1beta1.Install, experimentalv1alpha1.Install,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	options := client.Options{Scheme: scheme}
	objects, err := client.New(access, options)
	if err != nil {
		t.Fatal(err)
	}
	set, err := kubernetes.NewForConfig(access)
	if err != nil {
		t.Fatal(err)
	}
	about := suite.ConformanceOptions{
		Client: objects, ClientOptions: options, Clientset: set, RestConfig: access,
		ManifestFS: []fs.FS{&conformance.Manifests},
		ConfigurableOptions: suite.ConfigurableOptions{
			GatewayClassName: "istio", CleanupTestResources: true, AllowCRDsMismatch: true,
			TimeoutConfig: config.DefaultTimeoutConfig(), RunTest: os.Getenv("RUN_TEST"),
			Debug: os.Getenv("SUITE_DEBUG") != "",
			Implementation: conformancev1.Implementation{
				Organization: "chartpilot", Project: "chartpilot", URL: "https://chartpilot.test", Version: "0",
				Contact: []string{"chartpilot"},
			},
		},
	}
	for _, profile := range fields("PROFILES") {
		about.ConformanceProfiles = append(about.ConformanceProfiles, suite.ConformanceProfileName(profile))
	}
	for _, feature := range fields("FEATURES") {
		about.SupportedFeatures = append(about.SupportedFeatures, features.FeatureName(feature))
	}
	for _, test := range tests.ConformanceTests {
		fmt.Printf("requires %s %v\n", test.ShortName, test.Features)
	}
	run, err := suite.NewConformanceTestSuite(about)
	if err != nil {
		t.Fatal(err)
	}
	run.Setup(t, tests.ConformanceTests)
	t.Cleanup(func() {
		report, err := run.Report()
		if err != nil {
			t.Errorf("no report: %v", err)
			return
		}
		text, _ := json.MarshalIndent(report, "", " ")
		if err := os.WriteFile(os.Getenv("REPORT"), text, 0o644); err != nil {
			t.Error(err)
		}
	})
	if err := run.Run(t, tests.ConformanceTests); err != nil {
		t.Error(err)
	}
}

func fields(variable string) []string {
	return strings.FieldsFunc(os.Getenv(variable), func(r rune) bool { return r == ',' })
}
