import { describe, expect, it } from 'vitest';
import { discoveryCommand, normalizedArguments } from './discovery.ts';

/** Flags of a command line, without running the command. */
function flagsOf(...args: string[]): Record<string, unknown> {
  const command = discoveryCommand().exitOverride();
  return command.parseOptions(normalizedArguments(args)).unknown.length >= 0 ? command.opts() : {};
}

describe('the command line of pilot-discovery discovery', () => {
  it('accepts --secureGrpcAddr without a value, as in seed 002', () => {
    const line = '--monitoringAddr=:15014 --log_output_level=default:info --domain cluster.local --secureGrpcAddr';
    expect(flagsOf(...line.split(' '), '--keepaliveMaxServerConnectionAge', '30m')).toMatchObject({
      monitoringAddr: ':15014',
      log_output_level: 'default:info',
      domain: 'cluster.local',
      secureGRPCAddr: '',
      keepaliveMaxServerConnectionAge: '30m',
    });
  });

  it.each(['--secureGRPCAddr', '--secureGrpcAddr'])('accepts both spellings of %s, with and without =', (flag) => {
    expect(flagsOf(flag, ':15012')).toMatchObject({ secureGRPCAddr: ':15012' });
    expect(flagsOf(`${flag}=:15012`)).toMatchObject({ secureGRPCAddr: ':15012' });
    expect(flagsOf(`${flag}=`)).toMatchObject({ secureGRPCAddr: '' });
    expect(flagsOf(flag)).toMatchObject({ secureGRPCAddr: '' });
  });

  it('accepts an empty value', () => {
    expect(flagsOf('--registries=')).toMatchObject({ registries: '' });
  });

  it('has every required flag of the discovery command of Istio', () => {
    const knownFlags = new Set(discoveryCommand().options.map(({ long }) => long));
    const must = [
      'registries clusterRegistriesNamespace kubeconfig meshConfig networksConfig namespace shutdownDuration configDir',
      'domain clusterID httpAddr httpsAddr grpcAddr secureGRPCAddr monitoringAddr keepaliveInterval keepaliveTimeout',
      'keepaliveMaxServerConnectionAge log_output_level caCertFile tlsCertFile tlsKeyFile tls-cipher-suites profile',
      'tls-min-version kubernetesApiQPS kubernetesApiBurst ctrlz_port ctrlz_address log_target log_as_json log_caller',
      'log_stacktrace_level appNamespace resync trust-domain consulserverURL clusterAliases',
    ];
    const missingFlags = must
      .join(' ')
      .split(' ')
      .filter((flag) => !knownFlags.has(`--${flag}`));
    expect(missingFlags).toEqual([]);
  });

  it('has a help of at most one screen', () => {
    const help = discoveryCommand().helpInformation();
    expect(help.split('\n').length).toBeLessThan(50);
    expect(help).toContain('--configDir');
    expect(help).not.toContain('--kubernetesApiQPS');
  });
});
