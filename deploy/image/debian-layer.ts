/**
 * The Debian files of the image. apt downloads the packages and verifies their signatures, tar extracts them: no
 * maintainer script runs and no root is needed. The files that those scripts would create are written here.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Architecture } from './architecture.ts';
import { runTool } from './run-tool.ts';

/** Has libc6 2.36; Envoy and Node need 2.30 or later. */
export const debianSuite = 'bookworm';

/**
 * Each package is extracted without its dependencies: openssl, debconf and dpkg only serve maintainer scripts. `requireLibraries` finds a library
 * that a newer package needs in addition.
 */
const packages = [
  'base-files',
  'busybox',
  'ca-certificates',
  'dash',
  'iptables',
  'libbsd0',
  'libc6',
  'libedit2',
  'libgcc-s1',
  'libgmp10',
  'libip4tc2',
  'libip6tc2',
  'libjansson4',
  'libjemalloc2',
  'libmd0',
  'libmnl0',
  'libnetfilter-conntrack3',
  'libnfnetlink0',
  'libnftables1',
  'libnftnl11',
  'libstdc++6',
  'libtinfo6',
  'libxtables12',
  'netbase',
  'nftables',
];

/** 10 MB of manuals, translations, character sets, scripts and libraries of tools that are not in the image. Licences stay. */
const excludedPaths = [
  './usr/share/doc/*/[!c]*',
  './usr/share/doc/*/changelog*',
  './usr/share/man',
  './usr/share/locale',
  './usr/share/lintian',
  './usr/share/bug',
  './usr/share/gcc',
  './usr/lib/*/gconv',
  './usr/share/gdb',
  './usr/lib/*/xtables/libebt_*',
  './usr/lib/*/xtables/libarpt_*',
  // Libraries of programs compiled with -ffast-math, of profilers, debuggers and NIS: no program of the image needs
  // them.
  ...['libmvec', 'libc_malloc_debug', 'libmemusage', 'libpcprofile', 'libthread_db', 'libnsl', 'libtic'].flatMap(
    (library) => [`./lib/*/${library}.so*`, `./usr/lib/*/${library}.so*`],
  ),
];

/**
 * Programs of busybox: those that `bin/` of chartpilot calls, `ip` for the routes of TPROXY and IPv6, `tar` for `kubectl cp`, and those with
 * which a user looks into a pod. Not `wget`, which crashes with its option `-T`.
 */
const busyboxLinks = [
  ...['readlink', 'sed', 'sleep', 'ip', 'tar'],
  ...[
    'cat',
    'cp',
    'cut',
    'date',
    'df',
    'du',
    'env',
    'find',
    'free',
    'grep',
    'head',
    'hostname',
    'id',
    'kill',
    'ls',
    'mkdir',
    'mv',
    'nc',
  ],
  ...[
    'netstat',
    'nslookup',
    'ping',
    'ps',
    'rm',
    'sort',
    'stat',
    'tail',
    'timeout',
    'top',
    'tr',
    'true',
    'uname',
    'vi',
    'wc',
    'xargs',
  ],
];

/** The UID of Istio's sidecars, whose connections are not redirected. */
const passwd = `root:x:0:0:root:/root:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
istio-proxy:x:1337:1337:istio-proxy:/var/lib/istio:/usr/sbin/nologin
`;
const group = `root:x:0:
nogroup:x:65534:
istio-proxy:x:1337:
`;

/**
 * Volumes of Istio's pods. With these modes a tmpfs, which inherits the mode of the folder below it, is writable for
 * any UID.
 */
const writableFolders = ['etc/istio/proxy', 'var/lib/istio/data', 'run/secrets', 'tmp'];

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  /** Name and version of the source package, for vulnerability databases. */
  readonly source: string;
}

/**
 * Writes the Debian files to `root`, an empty folder.
 *
 * @param scratch an empty folder for downloads
 * @returns the extracted packages, sorted by name
 */
export function writeDebianLayer(root: string, scratch: string, { name: arch }: Architecture): DebianPackage[] {
  const archives = downloadPackages(scratch, arch);
  const database = join(root, 'var/lib/dpkg');
  mkdirSync(join(database, 'info'), { recursive: true });
  const controls = archives.map((archive) => extractPackage(archive, root, join(scratch, 'control')));
  writeFileSync(join(database, 'status'), controls.join('\n'));
  finishConfiguration(root);
  return controls.map(packageOfControl).sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** @returns paths of the archives, sorted */
function downloadPackages(scratch: string, arch: string): string[] {
  const archives = join(scratch, 'archives');
  for (const folder of ['lists/partial', 'cache/archives/partial', 'archives']) {
    mkdirSync(join(scratch, folder), { recursive: true });
  }
  writeFileSync(join(scratch, 'status'), '');
  const key = 'signed-by=/usr/share/keyrings/debian-archive-keyring.gpg';
  writeFileSync(
    join(scratch, 'sources.list'),
    `deb [${key}] http://deb.debian.org/debian ${debianSuite} main\n` +
      `deb [${key}] http://deb.debian.org/debian-security ${debianSuite}-security main\n`,
  );
  // Other settings of this machine's apt configuration, such as proxies, still apply.
  const settings = {
    'Dir::State': scratch,
    'Dir::State::lists': join(scratch, 'lists'),
    'Dir::State::status': join(scratch, 'status'),
    'Dir::Cache': join(scratch, 'cache'),
    'Dir::Etc::sourcelist': join(scratch, 'sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::Etc::preferences': '/dev/null',
    'Dir::Etc::preferencesparts': '/dev/null',
    'APT::Architecture': arch,
    'APT::Architectures::': arch,
    'APT::Sandbox::User': '',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '3',
  };
  const file = join(scratch, 'apt.conf');
  const lines = Object.entries(settings).map(([key, value]) => `${key} "${value}";\n`);
  writeFileSync(file, `#clear APT::Architectures;\n${lines.join('')}`);
  const env = { ...process.env, APT_CONFIG: file };
  runTool('apt-get', ['-q', 'update', '--error-on=any'], { env });
  runTool('apt-get', ['-q', 'download', ...packages], { env, cwd: archives });
  return readdirSync(archives)
    .sort()
    .map((archive) => join(archives, archive));
}

/**
 * Extracts a package and registers it in dpkg's database, which vulnerability scanners read.
 *
 * @returns its database entry
 */
function extractPackage(archive: string, root: string, control: string): string {
  const data = `${control}.tar`;
  runTool('sh', ['-c', 'dpkg-deb --fsys-tarfile "$1" >"$2"', 'sh', archive, data]);
  const excluded = excludedPaths.map((path) => `--exclude=${path}`);
  runTool('tar', ['-x', '-p', '--no-same-owner', ...excluded, '-f', data, '-C', root]);
  const fields = runTool('dpkg-deb', ['--field', archive]);
  const { name, architecture } = packageOfControl(fields);
  const isMultiArch = /^Multi-Arch: same$/m.test(fields);
  const files = runTool('tar', ['-t', ...excluded, '-f', data])
    .split('\n')
    .filter((path) => path !== '')
    .map((path) =>
      path
        .replace(/^\./, '')
        .replace(/(?<=.)\/$/, '')
        .replace(/^\/$/, '/.'),
    );
  const info = join(root, 'var/lib/dpkg/info', isMultiArch ? `${name}:${architecture}` : name);
  writeFileSync(`${info}.list`, `${files.join('\n')}\n`);
  return fields.replace(/^(Package: .*)$/m, '$1\nStatus: install ok installed');
}

function packageOfControl(fields: string): DebianPackage {
  const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(fields)?.[1];
  const [name = '', version = ''] = [field('Package'), field('Version')];
  const [, source = name, sourceVersion = version] = /^(\S+)(?: \((.*)\))?$/.exec(field('Source') ?? name) ?? [];
  return { name, version, architecture: field('Architecture') ?? '', source: `${source} ${sourceVersion}` };
}

function finishConfiguration(root: string): void {
  const link = (target: string, path: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    if (!existsSync(join(root, path))) symlinkSync(target, join(root, path));
  };
  const write = (path: string, content: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  write('etc/passwd', passwd);
  write('etc/group', group);
  // A kubelet or Docker mounts its own file over it, but runc does not.
  write('etc/hosts', '127.0.0.1\tlocalhost\n::1\tlocalhost\n');
  write('etc/nsswitch.conf', 'passwd: files\ngroup: files\nhosts: files dns\n');
  link('dash', 'bin/sh');
  for (const program of busyboxLinks) link('busybox', `bin/${program}`);
  link('/run', 'var/run');
  const certificates = join(root, 'usr/share/ca-certificates/mozilla');
  const bundle = readdirSync(certificates)
    .sort()
    .map((file) => `${readFileSync(join(certificates, file), 'utf8').trimEnd()}\n`);
  write('etc/ssl/certs/ca-certificates.crt', bundle.join(''));
  // The links that update-alternatives would create; the image also contains the legacy programs.
  for (const tool of ['iptables', 'ip6tables']) {
    for (const name of [tool, `${tool}-restore`, `${tool}-save`]) {
      link(`/usr/sbin/${name.replace(tool, `${tool}-nft`)}`, `etc/alternatives/${name}`);
      link(`/etc/alternatives/${name}`, `usr/sbin/${name}`);
    }
  }
  for (const folder of writableFolders) {
    mkdirSync(join(root, folder), { recursive: true });
    chmodSync(join(root, folder), 0o1777);
  }
}
