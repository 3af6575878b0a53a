import { Command, Option } from 'commander';
import { runExplain } from '../../discovery/explain/explain-command.ts';
import type { DiscoveryFlags } from '../../discovery/options/discovery-flags.ts';
import { type DiscoveryOptions, resolveDiscoveryOptions } from '../../discovery/options/discovery-options.ts';
import { mustBe } from '../../model/fields/violation.ts';
import { optionError } from '../../runtime/option-errors.ts';
import { entryText } from '../../runtime/output/log.ts';
import { standardError, standardOutput } from '../../runtime/output/standard-streams.ts';
import { addHelpSections } from './help-sections.ts';

interface ExplainFlags
  extends Pick<DiscoveryFlags, 'configDir' | 'meshConfig' | 'networksConfig' | 'registries' | 'domain' | 'clusterID'> {
  readonly node?: string;
  readonly label: readonly string[];
  readonly metadata: readonly string[];
  readonly from?: string;
  readonly url?: string;
  readonly method?: string;
  readonly header: readonly string[];
  readonly address?: string;
  readonly sni?: string;
  readonly http2?: boolean;
  readonly source?: string;
  readonly principal?: string;
  readonly inbound?: boolean;
  readonly format: 'text' | 'json';
}

const collectValue = (value: string, collectedValues: readonly string[]): readonly string[] => [
  ...collectedValues,
  value,
];

export function explainCommand(print: (text: string) => void = (text) => standardOutput.print(text)): Command {
  const command = new Command('explain')
    .summary('Explain how a proxy routes a request')
    .description(
      'Show the listener, filter chain, virtual host, route and cluster that a request matches, the object and line that each ' +
        'comes from, and the outcome: status and Envoy response flag. Decisions of external services and of code are reported ' +
        'as "not decided". Without --url, show all listeners. The proxy is computed from files, or a running one (--from). ' +
        'With --metadata GENERATOR=grpc, explain a call of a gRPC program without a proxy (--url xds:///HOST:PORT/SERVICE/METHOD).',
    );
  command.optionsGroup('Proxy:');
  command
    .option('--configDir <dir>', 'Directory of YAML files with Istio and Kubernetes objects, searched recursively')
    .option('--node <id>', 'Node ID: TYPE~IP~NAME.NAMESPACE~NAMESPACE.svc.DOMAIN; TYPE is sidecar or router')
    .option('--label <key=value>', 'Label of the workload; repeatable', collectValue, [])
    .option(
      '--metadata <key=value>',
      'Node metadata, e.g. INTERCEPTION_MODE=NONE; the value may be JSON; repeatable',
      collectValue,
      [],
    )
    .option('--from <url>', 'Running control plane (with --node) or Envoy admin interface to read from')
    .option('--meshConfig <file>', 'Mesh configuration file (default ./etc/istio/config/mesh)')
    .option('--networksConfig <file>', 'Mesh networks file (default ./etc/istio/config/meshNetworks)')
    .option('--registries <names>', 'Service registries, as for discovery (default Kubernetes)')
    .option('--domain <suffix>', 'DNS domain suffix (default cluster.local)');
  command.optionsGroup('Request:');
  command
    .option(
      '--url <url>',
      'URL: http://, https://, tcp://HOST:PORT or tls://HOST:PORT; of a gRPC program xds:///HOST:PORT/SERVICE/METHOD',
    )
    .option('--method <method>', 'HTTP method (default GET)')
    .option('--header <name=value>', 'Header, Host included; repeatable', collectValue, [])
    .option('--address <ip>', 'Destination address (default that of the service in the URL)')
    .option('--sni <name>', 'TLS server name (default the host of the URL)')
    .option('--http2', 'Use HTTP/2 instead of HTTP/1.1')
    .option('--source <ip>', 'Client address; without it, policies that match addresses are not decided')
    .option(
      '--principal <id>',
      'URI or DNS name in the client certificate, such as a SPIFFE ID (default no certificate)',
    )
    .option('--inbound', 'Request to the workload instead of from it');
  command.optionsGroup('Output:');
  command.addOption(new Option('--format <format>', 'Output format').choices(['text', 'json']).default('text'));
  return addHelpSections(command, {
    examples: [
      'pilot-discovery explain --registries= --configDir mesh --node sidecar~10.1.2.3~web-0.shop~shop.svc.cluster.local \\\n' +
        '    --url http://cart.example.com:8080/items --header x-user=anna',
    ],
    exitCodes: [
      ['0', 'explanation printed'],
      ['1', 'invalid flag or file, or no response from --from'],
    ],
  }).action(async (flags: ExplainFlags) => {
    const query = queryOf(flags);
    const { warnings: flagWarnings = [], notes = [] } = query.files ?? {};
    const ignoredOptions = [...flagWarnings, ...notes].filter(({ event }) =>
      ['option.ignored', 'option.fileMissing'].includes(event),
    );
    for (const entry of ignoredOptions) standardError.write(`pilot-discovery: ${entryText(entry)}\n`);
    const { text, warnings } = await runExplain(query);
    for (const warning of warnings) standardError.write(`pilot-discovery: ${warning}\n`);
    print(text);
  });
}

function queryOf({
  node,
  label,
  metadata,
  header,
  configDir,
  ...flags
}: ExplainFlags): Parameters<typeof runExplain>[0] & { readonly files?: DiscoveryOptions } {
  return {
    ...flags,
    headers: header,
    ...(configDir !== undefined && { files: resolveDiscoveryOptions({ ...flags, configDir }, process.env) }),
    ...(node !== undefined && {
      node: {
        id: node,
        labels: Object.fromEntries(label.map((text) => pair('--label', text))),
        metadata: Object.fromEntries(
          metadata.map((text) => pair('--metadata', text)).map(([key, value]) => [key, parseJsonOrText(value)]),
        ),
      },
    }),
  };
}

function pair(flag: string, text: string): readonly [string, string] {
  const equalsIndex = text.indexOf('=');
  if (equalsIndex < 1) throw optionError(flag, mustBe('KEY=VALUE', text));
  return [text.slice(0, equalsIndex), text.slice(equalsIndex + 1)];
}

/** Lists and maps are parsed as JSON; other values are text, as the agent sends them. */
function parseJsonOrText(text: string): unknown {
  if (!/^[{[]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
