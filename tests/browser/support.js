// What the tests share: reports, and a browser that reports everything it is asked for.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
export const names = ['sweep', 'sweep-tuned', 'many-steps', 'long', 'open-loop', 'killed', 'empty', 'errors', 'hostile', 'two', 'audit', 'checkup'];

export function browserPath() {
  const known = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
  const found = known.find(path => path && existsSync(path));
  if (!found) throw new Error('no Chromium found: install the package chromium, or name one in CHROMIUM');
  return found;
}

// A folder with the reports of all fixtures and a browser; close() removes both.
export function start() {
  return launch(folder => execFileSync('cargo', ['run', '--quiet', '-p', 'mydyno-report', '--example', 'fixtures', '--', folder],
    { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] }));
}

// What a server and a user may have written, to run a script in whoever looks at it.
export const hostile = '<img src=x onerror=document.title="run"><script>document.title="run"</script>';

// Runs MYDYNO_BIN (else target/release/mydyno) with its state in a folder, and gives what it prints.
function mydynoIn(folder) {
  const mydyno = process.env.MYDYNO_BIN ?? join(root, 'target', 'release', 'mydyno');
  const environment = { ...process.env, MYDYNO_STATE: join(folder, 'state') };
  return arguments_ => execFileSync(mydyno, arguments_, { env: environment, stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' });
}

// The same with `real`, the report of two runs on private servers with two settings; what the server says of itself and what it
// is asked is hostile.
export function startReal() {
  return launch(folder => {
    const call = mydynoIn(folder);
    const runs = ['16M', '64M'].map(size => {
      const run = join(folder, size);
      call(['bench', 'sql', '--sql', `50: SELECT '${hostile}'`, '--sql', '50: SELECT 1 /* </script><svg onload=document.title="run"> */',
        '--sandbox', '--set', `report_host=${hostile}`, '--set', `innodb_buffer_pool_size=${size}`, '--connections', '1,2',
        '--time', '20s', '--warmup', '1s', '--quiet', '--out', run]);
      return run;
    });
    call(['report', ...runs, '--format', 'html', '--output', join(folder, 'real.html')]);
  });
}

// Names that a server takes for a schema, tables and an account.
export const hostileNames = ['<img src=x onerror=document.title=1>', '<script>document.title=1</script>',
  '<svg onload=document.title=1>'];

// The same with `real-audit`, the page of an audit of a private server whose names are hostile.
export function startAudit() {
  return launch(folder => {
    const call = mydynoIn(folder);
    const [schema, one, other] = hostileNames;
    const server = JSON.parse(call(['server', 'up', 'audited', '--json', '--quiet', '--set', `report_host=${hostile}`]));
    try {
      call(['server', 'cli', 'audited', '-e', `CREATE DATABASE \`${schema}\`; CREATE TABLE \`${schema}\`.\`${one}\` (a INT PRIMARY KEY, b INT, INDEX i (b), INDEX j (b));`
        + ` CREATE TABLE \`${schema}\`.\`${other}\` (a INT PRIMARY KEY, b INT, INDEX i (b), INDEX j (b)); CREATE USER '${one}'@'%'`]);
      call(['audit', '--dsn', server.dsn, '--html', '--quiet', '--output', join(folder, 'real-audit.html')]);
    } finally {
      call(['server', 'down', 'audited', '--quiet']);
    }
  });
}

async function launch(fill) {
  const folder = mkdtempSync(join(tmpdir(), 'mydyno-reports-'));
  try {
    fill(folder);
  } catch (error) {
    rmSync(folder, { recursive: true });
    throw error;
  }
  const browser = await chromium.launch({
    executablePath: browserPath(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
  return {
    folder,
    json: name => JSON.parse(readFileSync(join(folder, name), 'utf8')),
    html: name => readFileSync(join(folder, name + '.html'), 'utf8'),
    // Opens a report; `page.seen` holds what was requested and what the console said.
    async open(name, options = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce', ...options });
      const page = await context.newPage();
      page.seen = { requests: [], complaints: [] };
      page.on('request', request => page.seen.requests.push(request.url()));
      page.on('console', message => page.seen.complaints.push(message.type() + ': ' + message.text()));
      page.on('pageerror', error => page.seen.complaints.push('error: ' + error.message));
      page.url_ = pathToFileURL(join(folder, name + '.html')).href;
      await page.goto(page.url_);
      return page;
    },
    async close() {
      await browser.close();
      rmSync(folder, { recursive: true });
    },
  };
}
