package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	meshv1 "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// More than any template needs; functions that multiply their input stop there.
const maxBuilt = 1 << 20

// functions are sprig's, and those of Istio's injector, which replace sprig's of the same name. Left out: what reads the environment of
// the server, the network, or keys.
func functions(environment map[string]string, defaults *meshv1.ProxyConfig) template.FuncMap {
	all := sprig.TxtFuncMap()
	for _, name := range []string{
		"expandenv", "getHostByName", "genPrivateKey", "derivePassword", "buildCustomCert", "genCA", "genCAWithKey",
		"genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "encryptAES", "decryptAES",
		"bcrypt", "htpasswd",
	} {
		delete(all, name)
	}
	maps.Copy(all, template.FuncMap{
		"annotation": func(meta metav1.ObjectMeta, name string, byDefault any) string {
			if value, found := meta.Annotations[name]; found {
				return value
			}
			return fmt.Sprint(byDefault)
		},
		"valueOrDefault": func(value, byDefault any) any {
			if value == nil || value == "" {
				return byDefault
			}
			return value
		},
		"isset": func(values map[string]string, key string) bool {
			_, found := values[key]
			return found
		},
		"toJSON":       func(values map[string]string) (string, error) { return jsonOf(orEmpty(values)) },
		"toJsonMap":    func(pairs ...string) (string, error) { return jsonOf(textsOf(pairs)) },
		"fromJSON":     func(text string) (result any, err error) { return result, json.Unmarshal([]byte(text), &result) },
		"structToJSON": structToJSON,
		"protoToJSON":  func(message proto.Message) (string, error) { return protoToJSON(message, defaults) },
		"toYaml":       func(value any) (string, error) { encoded, err := yaml.Marshal(value); return string(encoded), err },
		"indent": func(spaces int, text string) (string, error) {
			if spaces < 0 || spaces*(strings.Count(text, "\n")+1) > maxBuilt {
				return "", fmt.Errorf("indent: %d spaces are not possible", spaces)
			}
			return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", spaces)), nil
		},
		"contains":       func(part, text string) bool { return strings.Contains(text, part) },
		"toLower":        strings.ToLower,
		"directory":      func(file string) string { directory, _ := path.Split(file); return directory },
		"formatDuration": func(duration *durationpb.Duration) string { return duration.AsDuration().String() },
		"env": func(name, byDefault string) string {
			if value := environment[name]; value != "" {
				return value
			}
			return byDefault
		},
		"excludeInboundPort":  excludeInboundPort,
		"includeInboundPorts": func(containers []corev1.Container) string { return portsOf(containers, "") },
		"applicationPorts":    func(containers []corev1.Container) string { return portsOf(containers, "istio-proxy") },
		"kubevirtInterfaces":  func(text string) string { return text },
		"excludeInterfaces":   func(text string) string { return text },
		"appendMultusNetwork": appendMultusNetwork,
		"strdict":             func(pairs ...string) map[string]string { return textsOf(pairs) },
		"omit":                omit,
		"omitNil":             omitNil,
		"mergeMaps": func(all ...map[string]string) map[string]string {
			merged := map[string]string{}
			for _, one := range all {
				maps.Copy(merged, one)
			}
			return merged
		},
		"otelResourceAttributes": otelResourceAttributes,
		"repeat": func(count int, text string) (string, error) {
			if count < 0 || len(text) > 0 && count > maxBuilt/len(text) {
				return "", fmt.Errorf("repeat: %d times are not possible", count)
			}
			return strings.Repeat(text, count), nil
		},
	})
	return all
}

func jsonOf(value any) (string, error) {
	encoded, err := json.Marshal(value)
	return string(encoded), err
}

func orEmpty(values map[string]string) map[string]string {
	if values == nil {
		return map[string]string{}
	}
	return values
}

func textsOf(pairs []string) map[string]string {
	result := map[string]string{}
	for at := 0; at+1 < len(pairs); at += 2 {
		result[pairs[at]] = pairs[at+1]
	}
	return result
}

func structToJSON(value any) (string, error) {
	if value == nil {
		return "{}", nil
	}
	return jsonOf(value)
}

// protoToJSON leaves out fields of a ProxyConfig that equal the default.
func protoToJSON(message proto.Message, defaults *meshv1.ProxyConfig) (string, error) {
	if message == nil || !message.ProtoReflect().IsValid() {
		return "{}", nil
	}
	if config, isProxyConfig := message.(*meshv1.ProxyConfig); isProxyConfig {
		message = withoutDefaults(config, defaults)
	}
	encoded, err := protojson.Marshal(message)
	if err != nil {
		return "", err
	}
	// protojson adds spaces at random.
	var compact bytes.Buffer
	err = json.Compact(&compact, encoded)
	return compact.String(), err
}

func withoutDefaults(config, defaults *meshv1.ProxyConfig) proto.Message {
	result := proto.Clone(config)
	byDefault := defaults.ProtoReflect()
	config.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if byDefault.Has(field) && value.Equal(byDefault.Get(field)) {
			result.ProtoReflect().Clear(field)
		}
		return true
	})
	return result
}

func excludeInboundPort(port any, list string) string {
	wanted := strings.TrimSpace(fmt.Sprint(port))
	if wanted == "" || wanted == "0" {
		return list
	}
	ports := []string{}
	for _, one := range strings.Split(list, ",") {
		if one = strings.TrimSpace(one); one == wanted {
			return list
		} else if one != "" {
			ports = append(ports, one)
		}
	}
	return strings.Join(append(ports, wanted), ",")
}

func portsOf(containers []corev1.Container, except string) string {
	ports := []string{}
	for _, container := range containers {
		for _, port := range container.Ports {
			if container.Name != except && port.Protocol != corev1.ProtocolUDP && port.Protocol != corev1.ProtocolSCTP {
				ports = append(ports, strconv.Itoa(int(port.ContainerPort)))
			}
		}
	}
	return strings.Join(ports, ",")
}

// appendMultusNetwork adds a network to the annotation of Multus, which is a list of names or JSON, unless it is there.
func appendMultusNetwork(networks, network string) (string, error) {
	if networks == "" {
		return network, nil
	}
	end := strings.LastIndex(networks, "]")
	if end < 0 {
		for _, name := range strings.Split(networks, ",") {
			if strings.TrimSpace(name) == network {
				return networks, nil
			}
		}
		return networks + ", " + network, nil
	}
	var list []struct{ Name string }
	if err := json.Unmarshal([]byte(networks), &list); err != nil {
		return "", fmt.Errorf("appendMultusNetwork: %w", err)
	}
	for _, one := range list {
		if one.Name == network {
			return networks, nil
		}
	}
	added, err := jsonOf(map[string]string{"name": network})
	return networks[:end] + ", " + added + networks[end:], err
}

func omit(values map[string]any, names ...string) map[string]any {
	result := maps.Clone(values)
	for _, name := range names {
		delete(result, name)
	}
	return result
}

func omitNil(values map[string]any) map[string]any {
	result := maps.Clone(values)
	maps.DeleteFunc(result, func(_ string, value any) bool { return value == nil })
	return result
}

func otelResourceAttributes(values ...string) (string, error) {
	if len(values)%2 != 0 {
		return "", errors.New("otelResourceAttributes: needs pairs of name and value")
	}
	var pairs []string
	for at := 0; at < len(values); at += 2 {
		pairs = append(pairs, values[at]+"="+values[at+1])
	}
	return strings.Join(pairs, ","), nil
}
