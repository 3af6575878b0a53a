import { describe, expect, it } from 'vitest';
import { httpFilterNames, type JsonObject, nodes, PatchedMesh } from '../../../test/fixtures/given-patches.ts';

const manager = 'envoy.filters.network.http_connection_manager';
const router = 'envoy.filters.http.router';
const typedLua = (code: string): string =>
  `{"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: "${code}"}}`;
const lua = `{name: lua, typed_config: ${typedLua('')}}`;
const filter = (match: string, operation: string, value = lua): string =>
  `{applyTo: HTTP_FILTER, match: ${match}, patch: {operation: ${operation}${operation === 'REMOVE' ? '' : `, value: ${value}`}}}`;
const inManager = (extraMatch = '', sub = ''): string =>
  `listener: {${extraMatch}${extraMatch && ', '}filterChain: {filter: {name: ${manager}${sub && `, subFilter: {name: ${sub}}`}}}}`;

/** Returns the listeners with a filter of this name, and the names of their chains. */
function placesOf(listeners: readonly JsonObject[], name: string): readonly string[] {
  return listeners.flatMap((listener) =>
    chainsOf(listener)
      .filter((chain) => httpFilterNames(chain).includes(name))
      .map((chain) => `${listener.name} ${chain.name ?? ''}`.trim()),
  );
}

function chainsOf(listener: JsonObject): readonly JsonObject[] {
  return [...listener.filterChains, ...(listener.defaultFilterChain ? [listener.defaultFilterChain] : [])];
}

describe('HTTP filters that a patch matches', () => {
  const catchAll = 'virtualInbound virtualInbound-catchall-http';

  it.each<[keyof typeof nodes, string, string[]]>([
    ['client', `{context: SIDECAR_OUTBOUND, ${inManager()}}`, ['0.0.0.0_80']],
    ['client', `{context: SIDECAR_OUTBOUND, ${inManager('portNumber: 80')}}`, ['0.0.0.0_80']],
    ['client', `{context: SIDECAR_OUTBOUND, ${inManager('portNumber: 81')}}`, []],
    ['client', `{context: SIDECAR_OUTBOUND, ${inManager('name: 0.0.0.0_80')}}`, ['0.0.0.0_80']],
    ['client', `{context: SIDECAR_OUTBOUND, ${inManager('name: 10.2.0.1_5432')}}`, []],
    ['client', `{context: GATEWAY, ${inManager()}}`, []],
    ['server', `{context: SIDECAR_INBOUND, ${inManager('portNumber: 8080')}}`, ['virtualInbound 0.0.0.0_8080']],
    ['server', `{context: SIDECAR_INBOUND, ${inManager()}}`, [catchAll, 'virtualInbound 0.0.0.0_8080']],
    ['server', '{context: SIDECAR_INBOUND, listener: {filterChain: {name: virtualInbound-catchall-http}}}', [catchAll]],
    [
      'server',
      '{context: SIDECAR_INBOUND, listener: {filterChain: {destinationPort: 8080}}}',
      ['virtualInbound 0.0.0.0_8080'],
    ],
    [
      'server',
      '{context: SIDECAR_INBOUND, listener: {filterChain: {applicationProtocols: "http/1.1,h2c"}}}',
      [catchAll],
    ],
    ['server', '{context: SIDECAR_INBOUND, listener: {filterChain: {applicationProtocols: "http/1.1,x"}}}', []],
    ['server', '{context: SIDECAR_INBOUND, listener: {filterChain: {sni: web.test}}}', []],
    ['server', '{context: SIDECAR_INBOUND, listener: {filterChain: {transportProtocol: tls}}}', []],
    ['server', '{listener: {filterChain: {filter: {name: envoy.filters.network.tcp_proxy}}}}', []],
    ['door', `{context: GATEWAY, ${inManager('portNumber: 8080')}}`, ['0.0.0.0_8080']],
    ['door', `{context: SIDECAR_OUTBOUND, ${inManager()}}`, []],
    [
      'door',
      `{listener: {filterChain: {filter: {name: envoy.http_connection_manager, subFilter: {name: envoy.router}}}}}`,
      ['0.0.0.0_8080'],
    ],
  ])('on a %s, %s matches the expected filters', (node, match, expected) => {
    const patchedListeners = new PatchedMesh({ patches: [filter(match, 'INSERT_BEFORE')] }).json(
      'listeners',
      nodes[node],
    );
    // Chains with one name differ only in their transport protocol.
    expect([...new Set(placesOf(patchedListeners, 'lua'))]).toEqual(expected);
  });

  it('a patch does not change other listeners', () => {
    const patchedMesh = new PatchedMesh({
      patches: [filter(`{context: SIDECAR_OUTBOUND, ${inManager()}}`, 'INSERT_FIRST')],
    });
    const otherListeners = (mesh: PatchedMesh) =>
      mesh.json('listeners', nodes.client).filter((listener) => !placesOf([listener], 'lua').length);
    expect(otherListeners(patchedMesh)).toHaveLength(3);
    expect(new PatchedMesh().json('listeners', nodes.client)).toEqual(
      expect.arrayContaining(otherListeners(patchedMesh)),
    );
  });
});

describe('operations on a filter list', () => {
  const namesAfter = (...patches: string[]): readonly string[] => {
    const patchedMesh = new PatchedMesh({ patches });
    return httpFilterNames(patchedMesh.one('listeners', nodes.client, '0.0.0.0_80').filterChains[0]);
  };
  const unpatched = namesAfter();
  const all = `{${inManager()}}`;
  const at = (name: string) => `{${inManager('', name)}}`;
  const filterNamed = (name: string) => lua.replace('name: lua', `name: ${name}`);

  it('the unpatched list contains no patched filter', () => {
    expect(unpatched.length).toBeGreaterThan(1);
    expect(unpatched.at(-1)).toBe(router);
  });

  it.each<[string, string[], (names: readonly string[]) => readonly string[]]>([
    ['INSERT_FIRST', [filter(all, 'INSERT_FIRST')], (names) => ['lua', ...names]],
    ['INSERT_BEFORE without a filter name', [filter(all, 'INSERT_BEFORE')], (names) => ['lua', ...names]],
    ['INSERT_BEFORE', [filter(at(router), 'INSERT_BEFORE')], (names) => names.toSpliced(-1, 0, 'lua')],
    ['INSERT_AFTER', [filter(at(unpatched[0]!), 'INSERT_AFTER')], (names) => names.toSpliced(1, 0, 'lua')],
    ['INSERT_BEFORE a missing filter', [filter(at('none'), 'INSERT_BEFORE')], (names) => names],
    ['INSERT_AFTER a missing filter', [filter(at('none'), 'INSERT_AFTER')], (names) => names],
    ['REMOVE', [filter(at(unpatched[0]!), 'REMOVE')], (names) => names.slice(1)],
    ['REMOVE without a filter name', [filter(all, 'REMOVE')], (names) => names],
    ['REPLACE', [filter(at(unpatched[0]!), 'REPLACE')], (names) => ['lua', ...names.slice(1)]],
    ['REPLACE without a filter name', [filter(all, 'REPLACE')], (names) => names],
    [
      'INSERT_BEFORE a filter that an earlier patch inserted',
      [filter(at(router), 'INSERT_BEFORE'), filter(at('lua'), 'INSERT_BEFORE', filterNamed('other'))],
      (names) => names.toSpliced(-1, 0, 'other', 'lua'),
    ],
    [
      'REMOVE does not affect inserted filters',
      [filter(all, 'INSERT_FIRST'), filter(at('lua'), 'REMOVE')],
      (names) => ['lua', ...names],
    ],
    [
      'REPLACE does not affect inserted filters',
      [filter(all, 'INSERT_FIRST'), filter(at('lua'), 'REPLACE', filterNamed('other'))],
      (names) => ['lua', ...names],
    ],
    [
      'INSERT_FIRST and REMOVE with one filter name',
      [filter(all, 'INSERT_FIRST', filterNamed(unpatched[0]!)), filter(at(unpatched[0]!), 'REMOVE')],
      (names) => names,
    ],
    [
      'INSERT_AFTER the result of REPLACE',
      [filter(at('lua'), 'INSERT_AFTER', filterNamed('other')), filter(at(unpatched[0]!), 'REPLACE')],
      (names) => ['lua', 'other', ...names.slice(1)],
    ],
    [
      'ADD with REMOVE of the terminal filter',
      [filter(all, 'ADD'), filter(at(router), 'REMOVE')],
      (names) => [...names.slice(0, -1), 'lua'],
    ],
  ])('a filter is inserted, replaced or removed as expected: %s', (_description, patches, expected) => {
    expect(namesAfter(...patches)).toEqual(expected(unpatched));
  });

  it('a merge applies to existing filters, but not to filters that another patch inserts', () => {
    const settings = (code: string) => `{name: lua, typed_config: ${typedLua(code)}}`;
    const patches = [filter(all, 'INSERT_FIRST', settings('first')), filter(at('lua'), 'MERGE', settings('other'))];
    const text = JSON.stringify(new PatchedMesh({ patches }).one('listeners', nodes.client, '0.0.0.0_80'));
    expect(text).toContain('first');
    expect(text).not.toContain('other');
  });

  it.each(['ADD', 'INSERT_AFTER'])(
    'filters after the terminal filter are removed and reported with %s',
    (operation) => {
      const patchedMesh = new PatchedMesh({ patches: [filter(operation === 'ADD' ? all : at(router), operation)] });
      expect(httpFilterNames(patchedMesh.one('listeners', nodes.client, '0.0.0.0_80').filterChains[0])).toEqual(
        unpatched,
      );
      expect(patchedMesh.problems()).toEqual([`lua must not come after ${router}, the terminal filter`]);
    },
  );

  it('settings of the same type are merged, and another type is reported as a failure', () => {
    const type = 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router';
    const merge = (typed: string) => filter(at(router), 'MERGE', `{name: ${router}, typed_config: ${typed}}`);
    const patchedMesh = new PatchedMesh({
      patches: [
        merge(`{"@type": ${type}, suppress_envoy_headers: true}`),
        merge('{"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua}'),
      ],
    });
    const text = JSON.stringify(patchedMesh.one('listeners', nodes.client, '0.0.0.0_80'));
    expect(text).toContain('"suppressEnvoyHeaders":true');
    expect(patchedMesh.problems()).toEqual([
      undefined,
      'envoy.extensions.filters.http.lua.v3.Lua cannot be merged into envoy.extensions.filters.http.router.v3.Router',
    ]);
  });
});

describe('patches of listeners, filter chains and network filters', () => {
  const db = '10.2.0.1_5432';

  it('settings of a network filter are merged', () => {
    const value = `{name: x, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stream_idle_timeout: 0.5s, server_name: mine}}`;
    const patchedMesh = new PatchedMesh({
      patches: [
        `{applyTo: NETWORK_FILTER, match: {context: SIDECAR_OUTBOUND, listener: {filterChain: {filter: {name: ${manager}}}}}, patch: {operation: MERGE, value: ${value}}}`,
      ],
    });
    const plain = new PatchedMesh().one('listeners', nodes.client, '0.0.0.0_80').filterChains[0].filters[0];
    const mergedFilter = patchedMesh.one('listeners', nodes.client, '0.0.0.0_80').filterChains[0].filters[0];
    const changes = { serverName: 'mine', streamIdleTimeout: '0.500s' };
    expect(mergedFilter).toEqual({ ...plain, typedConfig: { ...plain.typedConfig, ...changes } });
  });

  it('network filters are added and removed', () => {
    const rbac =
      '{name: rbac, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC, stat_prefix: r}}';
    const patch = (operation: string, sub = '') =>
      `{applyTo: NETWORK_FILTER, match: {listener: {name: ${db}${sub && `, filterChain: {filter: {name: ${sub}}}`}}}, patch: {operation: ${operation}, value: ${rbac}}}`;
    const names = (...patches: string[]) =>
      new PatchedMesh({ patches })
        .one('listeners', nodes.client, db)
        .filterChains.map(({ filters }: JsonObject) => filters.map(({ name }: JsonObject) => name));
    const tcp = 'envoy.filters.network.tcp_proxy';
    expect(names(patch('INSERT_BEFORE', 'envoy.tcp_proxy'))).toEqual([['rbac', tcp]]);
    expect(names(patch('ADD'))).toEqual([[tcp]]);
    expect(names(patch('REPLACE', tcp))).toEqual([['rbac']]);
  });

  it('filter chains are merged, removed and added, and a listener without chains is removed', () => {
    const chain = (operation: string, value = '{}') =>
      `{applyTo: FILTER_CHAIN, match: {listener: {name: ${db}}}, patch: {operation: ${operation}, value: ${value}}}`;
    const listeners = (...patches: string[]) => new PatchedMesh({ patches }).json('listeners', nodes.client);
    const findDbListener = (...patches: string[]) => listeners(...patches).find(({ name }) => name === db);
    expect(findDbListener(chain('MERGE', '{transport_socket_connect_timeout: 3s}'))!.filterChains).toEqual([
      { ...findDbListener()!.filterChains[0], transportSocketConnectTimeout: '3s' },
    ]);
    expect(
      findDbListener(chain('ADD', '{name: mine, filter_chain_match: {destination_port: 1}}'))!.filterChains.at(-1).name,
    ).toBe('mine');
    expect(findDbListener(chain('REMOVE'))).toBeUndefined();
    const replacedListener = findDbListener(chain('REMOVE'), chain('ADD', '{name: mine}'))!;
    expect(replacedListener.filterChains).toEqual([{ name: 'mine' }]);
    expect(listeners(chain('REMOVE'))).toHaveLength(listeners().length - 1);
  });

  it('listener filters are added in order', () => {
    const inspector =
      '{name: mine, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol}}';
    const patch = (operation: string, filterName = '') =>
      `{applyTo: LISTENER_FILTER, match: {context: SIDECAR_INBOUND, listener: {name: virtualInbound${filterName && `, listenerFilter: ${filterName}`}}}, patch: {operation: ${operation}, value: ${inspector}}}`;
    const names = (...patches: string[]) =>
      new PatchedMesh({ patches })
        .one('listeners', nodes.server, 'virtualInbound')
        .listenerFilters.map(({ name }: JsonObject) => name);
    const [first, ...rest] = names();
    expect(names(patch('INSERT_FIRST'))).toEqual(['mine', first, ...rest]);
    expect(names(patch('INSERT_AFTER', first))).toEqual([first, 'mine', ...rest]);
    expect(names(patch('ADD'))).toEqual([first, ...rest, 'mine']);
    expect(names(patch('REMOVE', first))).toEqual(rest);
  });

  it('an unbound listener gets a socket option that bound and internal listeners do not get', () => {
    const mergedWith = (name: string, bound: boolean): string =>
      `{applyTo: LISTENER, match: {listener: {name: ${name}}}, patch: {operation: MERGE, value: {bind_to_port: ${bound}}}}`;
    const addedAs = (name: string, extraFields: string): string =>
      `{applyTo: LISTENER, patch: {operation: ADD, value: {name: ${name}, ${extraFields}, bind_to_port: false}}}`;
    const patches = [
      mergedWith('0.0.0.0_80', true),
      mergedWith('virtualOutbound', false),
      addedAs('mine', 'address: {pipe: {path: /tmp/x}}'),
      addedAs('inner', 'internal_listener: {}'),
    ];
    const patchedMesh = new PatchedMesh({ patches });
    const unbound = patchedMesh
      .json('listeners', nodes.client)
      .filter(({ socketOptions }) => socketOptions?.[0].description === 'unbound');
    expect(unbound.map(({ name }) => name)).toEqual([db, 'virtualOutbound', 'mine']);
    const secondMesh = new PatchedMesh({ patches: [...patches, mergedWith('0.0.0.0_80', false)] });
    expect(secondMesh.one('listeners', nodes.client, '0.0.0.0_80').socketOptions).toHaveLength(1);
  });

  it('a listener is merged without changing its name, is removed, or is added once', () => {
    const patches = [
      '{applyTo: LISTENER, match: {context: SIDECAR_OUTBOUND, listener: {portNumber: 80}}, patch: {operation: MERGE, value: {name: x, per_connection_buffer_limit_bytes: 9}}}',
      `{applyTo: LISTENER, match: {listener: {name: ${db}}}, patch: {operation: REMOVE}}`,
      '{applyTo: LISTENER, patch: {operation: ADD, value: {name: mine, address: {pipe: {path: /tmp/x}}}}}',
      '{applyTo: LISTENER, patch: {operation: ADD, value: {name: virtualInbound}}}',
      '{applyTo: LISTENER, match: {context: GATEWAY}, patch: {operation: ADD, value: {name: door-only}}}',
    ];
    const unpatched = new PatchedMesh().json('listeners', nodes.client).map(({ name }) => name);
    const patchedMesh = new PatchedMesh({ patches });
    expect(patchedMesh.json('listeners', nodes.client).map(({ name }) => name)).toEqual([
      ...unpatched.filter((name) => name !== db),
      'mine',
    ]);
    expect(patchedMesh.one('listeners', nodes.client, '0.0.0.0_80').perConnectionBufferLimitBytes).toBe(9);
    expect(patchedMesh.problems()[3]).toBe('there is already a listener virtualInbound');
    expect(patchedMesh.json('listeners', nodes.door).map(({ name }) => name)).toEqual([
      '0.0.0.0_8080',
      'mine',
      'virtualInbound',
      'door-only',
    ]);
  });
});
