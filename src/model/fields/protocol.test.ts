import { describe, expect, it } from 'vitest';
import { isHttp, isHttp2, isTcp, isTls, protocolOf } from './protocol.ts';

describe('the protocol of a port', () => {
  it.each([
    [{ name: 'http-web', number: 80 }, 'HTTP'],
    [{ name: 'HTTP2', number: 80 }, 'HTTP2'],
    [{ name: 'grpc-web-ui', number: 80 }, 'GRPC-Web'],
    [{ name: 'grpc', number: 80 }, 'GRPC'],
    [{ name: 'web', number: 80 }, 'unsupported'],
    [{ name: 'db', number: 3306 }, 'TCP'],
    [{ name: 'dns', number: 53, transport: 'UDP' }, 'UDP'],
    [{ name: 'tcp', number: 80, appProtocol: 'http' }, 'HTTP'],
    [{ name: 'tcp', number: 80, appProtocol: 'kubernetes.io/h2c' }, 'HTTP2'],
    [{ name: 'tcp', number: 80, appProtocol: 'kubernetes.io/wss' }, 'HTTPS'],
    [{ name: 'http', number: 80, appProtocol: 'example.com/x' }, 'unsupported'],
    [{ name: 'constructor', number: 80 }, 'unsupported'],
    [{ name: 'constructor-x', number: 3306 }, 'TCP'],
    [{ name: 'http', number: 80, appProtocol: 'constructor' }, 'unsupported'],
  ])('is derived from the name and number %j: %s', (port, protocol) => {
    expect(protocolOf(port)).toBe(protocol);
  });

  it('belongs to exactly one family', () => {
    expect([
      isHttp('GRPC'),
      isHttp2('GRPC'),
      isHttp2('HTTP'),
      isTls('HTTPS'),
      isTcp('Mongo'),
      isTcp('unsupported'),
    ]).toEqual([true, true, false, true, true, false]);
  });
});
