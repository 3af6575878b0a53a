import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { Http2Connection } from './http2-connection.ts';

it('a connection without the required client certificate fails with the TLS alert, not with a timeout', async () => {
  const authority = createAuthority();
  const { certificate: cert, privateKey: key } = authority.issue(['localhost']);
  const server = createSecureServer({
    key,
    cert,
    ca: authority.certificate,
    requestCert: true,
    rejectUnauthorized: true,
  });
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const opening = Http2Connection.openConnection(
    url,
    { ca: authority.certificate, servername: 'localhost' },
    60_000,
    new AbortController().signal,
  );
  await expect(opening).rejects.toMatchObject({
    failure: { kind: 'unreachable', message: expect.stringMatching(/alert certificate required/) },
  });
});
