import { describe, expect, it } from 'vitest';
import { apiVersionOf, customResourceDefinitions, pathOf, resourceOf } from './api-resource.ts';

describe('a resource of the Kubernetes API', () => {
  it('has the address and the version that the API server knows it by', () => {
    const virtualServices = resourceOf('VirtualService');
    expect(pathOf(virtualServices)).toBe('/apis/networking.istio.io/v1/virtualservices');
    expect(pathOf(virtualServices, 'shop')).toBe('/apis/networking.istio.io/v1/namespaces/shop/virtualservices');
    expect(apiVersionOf(virtualServices)).toBe('networking.istio.io/v1');
    expect(pathOf(resourceOf('Pod'), 'shop')).toBe('/api/v1/namespaces/shop/pods');
    expect(apiVersionOf(resourceOf('Pod'))).toBe('v1');
  });

  it('is in no namespace where its kind is not, whatever was asked for', () => {
    expect(pathOf(resourceOf('Node'), 'shop')).toBe('/api/v1/nodes');
    expect(pathOf(customResourceDefinitions)).toBe('/apis/apiextensions.k8s.io/v1/customresourcedefinitions');
  });

  it('is of the version that was asked for, and a name cannot leave its place in the address', () => {
    expect(pathOf(resourceOf('VirtualService', 'v1beta1'))).toContain('/v1beta1/');
    expect(pathOf(resourceOf('Pod'), '../../nodes')).toBe('/api/v1/namespaces/..%2F..%2Fnodes/pods');
  });

  it('is the Gateway of its own group, of two with one name', () => {
    expect(pathOf(resourceOf('KubernetesGateway'))).toBe('/apis/gateway.networking.k8s.io/v1/gateways');
    expect(pathOf(resourceOf('Gateway'))).toBe('/apis/networking.istio.io/v1/gateways');
    // As objects say it: what says otherwise is passed over.
    expect(resourceOf('KubernetesGateway').kind).toBe('Gateway');
  });
});
