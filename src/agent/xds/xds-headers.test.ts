import { once } from 'node:events';
import { connect, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { xdsHeaders } from './xds-headers.ts';

test('removes whitespace around a header value, because HTTP/2 rejects it', () => {
  const { headers, warnings } = xdsHeaders({ ISTIO_META_CLUSTER_ID: 'east\n', XDS_HEADER_TENANT: ' a b ' });
  expect(headers).toEqual({ clusterid: 'east', tenant: 'a b' });
  expect(warnings).toEqual([]);
});

test.each(['Zürich', '東京', 'a\nb', 'a\u007f', ' \n'])(
  'omits the cluster ID %j with a warning, because it is an invalid header value',
  (name) => {
    const { headers, warnings } = xdsHeaders({ ISTIO_META_CLUSTER_ID: name });
    expect(headers).toEqual({});
    expect(warnings).toMatchObject([{ event: 'option.ignored', setting: 'ISTIO_META_CLUSTER_ID' }]);
  },
);

test('sends header values from any environment in a form that the server accepts', async () => {
  const server = createServer();
  server.on('stream', (stream, headers) => {
    stream.respond({ ':status': 200 });
    stream.end(JSON.stringify({ cluster: headers.clusterid ?? '', tenant: headers.tenant ?? '' }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => {
    session.destroy();
    server.close();
  });
  for (const value of ['a', ' a', 'a\t', 'a\nb', 'ä', '\u007f', '']) {
    const { headers } = xdsHeaders({ ISTIO_META_CLUSTER_ID: value, XDS_HEADER_TENANT: value });
    const stream = session.request({ ':path': '/', ...headers });
    const chunks: Buffer[] = [];
    for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
    const receivedValue = /^[\x20-\x7e]*$/.test(value.trim()) ? value.trim() : '';
    expect(JSON.parse(Buffer.concat(chunks).toString() || '"nothing"'), JSON.stringify(value)).toEqual({
      cluster: receivedValue,
      tenant: receivedValue,
    });
  }
});
