import { describe, expect, it } from 'vitest';
import { apiVersionOf, customResourceDefinitions, pathOf, resourceOf } from './api-resource.ts';

describe('a resource path of the Kubernetes API', () => {
  it('is the path of the API server, including the version', () => {
    const virtualServices = resourceOf('VirtualService');
    expect(pathOf(virtualServices)).toBe('/apis/networking.istio.io/v1/virtualservices');
    expect(pathOf(virtualServices, 'shop')).toBe('/apis/networking.istio.io/v1/namespaces/shop/virtualservices');
    expect(apiVersionOf(virtualServices)).toBe('networking.istio.io/v1');
    expect(pathOf(resourceOf('Pod'), 'shop')).toBe('/api/v1/namespaces/shop/pods');
    expect(apiVersionOf(resourceOf('Pod'))).toBe('v1');
  });

  it('contains no namespace if the kind is cluster-scoped, even if one is requested', () => {
    expect(pathOf(resourceOf('Node'), 'shop')).toBe('/api/v1/nodes');
    expect(pathOf(customResourceDefinitions)).toBe('/apis/apiextensions.k8s.io/v1/customresourcedefinitions');
  });

  it('contains the requested version and escaped names', () => {
    expect(pathOf(resourceOf('VirtualService', 'v1beta1'))).toContain('/v1beta1/');
    expect(pathOf(resourceOf('Pod'), '../../nodes')).toBe('/api/v1/namespaces/..%2F..%2Fnodes/pods');
  });

  it('distinguishes the two Gateway kinds by their groups', () => {
    expect(pathOf(resourceOf('KubernetesGateway'))).toBe('/apis/gateway.networking.k8s.io/v1/gateways');
    expect(pathOf(resourceOf('Gateway'))).toBe('/apis/networking.istio.io/v1/gateways');
    // Received objects with another kind would be skipped.
    expect(resourceOf('KubernetesGateway').kind).toBe('Gateway');
  });
});
