import { expect, it } from 'vitest';
import { readConfigObject } from '../../model/config/config-file.ts';
import { ConfigOrigins } from './sources.ts';

it('explain shows the address of an xDS source as the location of its objects', () => {
  const address = 'xds://config.example.com:15010';
  const object = {
    ...{ apiVersion: 'networking.istio.io/v1', kind: 'VirtualService', metadata: { name: 'web', namespace: 'shop' } },
    spec: { hosts: ['web.example.com'], http: [{ directResponse: { status: 200 } }] },
  };
  const { config } = readConfigObject(address, object, { creationTimestamp: 0, source: { file: address, line: 0 } });
  const key = { kind: 'VirtualService', namespace: 'shop', name: 'web' };
  expect(new ConfigOrigins(() => config).originOf({ key, path: ['spec', 'http', 0] })).toEqual({
    ...{ object: 'VirtualService shop/web', field: 'spec.http[0]', place: address },
  });
});
