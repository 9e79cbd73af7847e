"""Small test files as libraries have them, each with a right answer: plain unittest or pytest passes them all."""

# ruff: noqa: E501 - a program a line

CASES = "import unittest\nfrom solution import *\nimport solution\nclass T(unittest.TestCase):\n"
FILES: dict[str, tuple[str, str]] = {
    # name: (the answer, the test file)
    "signature": (
        "def f(a, b=2, *, c=3):\n    'Adds.'\n    return a + b + c\n",
        "import inspect\n"
        + CASES
        + "    def test(self):\n        self.assertEqual(list(inspect.signature(f).parameters), ['a', 'b', 'c'])\n        self.assertEqual(f.__doc__, 'Adds.')\n        self.assertEqual(f.__name__, 'f')\n        self.assertTrue(inspect.isfunction(f) and callable(f))\n",
    ),
    "generators": (
        "def count(n):\n    for i in range(n):\n        got = yield i\n        if got: yield got\n",
        "import inspect, types\n"
        + CASES
        + "    def test(self):\n        g = count(3)\n        self.assertIsInstance(g, types.GeneratorType)\n        self.assertEqual(next(g), 0)\n        self.assertEqual(g.send('x'), 'x')\n        self.assertEqual(list(g), [1, 2])\n        self.assertTrue(inspect.isgeneratorfunction(count))\n        with self.assertRaises(StopIteration):\n            next(g)\n",
    ),
    "async": (
        "import asyncio\nasync def double(x):\n    await asyncio.sleep(0)\n    if x < 0: raise ValueError('below')\n    return 2 * x\n",
        "import asyncio\nfrom solution import double\nimport unittest\nclass T(unittest.IsolatedAsyncioTestCase):\n    async def test_one(self):\n        self.assertEqual(await double(2), 4)\n    async def test_gather(self):\n        self.assertEqual(await asyncio.gather(double(1), double(2)), [2, 4])\n    async def test_raises(self):\n        with self.assertRaises(ValueError):\n            await double(-1)\n",
    ),
    "async with": (
        "class Pool:\n    def __init__(self): self.open = False\n    async def __aenter__(self):\n        self.open = True\n        return self\n    async def __aexit__(self, *_):\n        self.open = False\n    async def get(self): return self.open\n",
        "import asyncio\nfrom solution import Pool\nimport unittest\nclass T(unittest.TestCase):\n    def test(self):\n        async def main():\n            async with Pool() as p:\n                inside = await p.get()\n            return inside, await p.get()\n        self.assertEqual(asyncio.run(main()), (True, False))\n",
    ),
    "async for": (
        "async def numbers(n):\n    for i in range(n): yield i\n",
        "import asyncio\nfrom solution import numbers\nimport unittest\nclass T(unittest.TestCase):\n    def test(self):\n        async def main(): return [x async for x in numbers(3)]\n        self.assertEqual(asyncio.run(main()), [0, 1, 2])\n",
    ),
    "logs": (
        "import logging\nlog = logging.getLogger('app.work')\ndef work(n):\n    log.info('working on %d', n)\n    if n < 0: log.error('below')\n",
        CASES
        + "    def test(self):\n        with self.assertLogs('app', level='INFO') as seen:\n            work(-1)\n        self.assertEqual(seen.output, ['INFO:app.work:working on -1', 'ERROR:app.work:below'])\n    def test_none(self):\n        with self.assertNoLogs('app', level='ERROR'):\n            work(1)\n",
    ),
    "caplog": (
        "import logging\ndef work():\n    logging.getLogger(__name__).warning('hot')\n",
        "from solution import work\ndef test_it(caplog):\n    work()\n    assert 'hot' in caplog.text\n    assert caplog.records[0].levelname == 'WARNING'\n",
    ),
    "warnings": (
        "import warnings\ndef old():\n    warnings.warn('use new', DeprecationWarning, stacklevel=2)\n    return 1\nclass Odd(UserWarning): pass\ndef odd():\n    warnings.warn(Odd('odd'))\n",
        "import warnings, pytest\nfrom solution import old, odd, Odd\ndef test_warns():\n    with pytest.warns(DeprecationWarning, match='new'):\n        assert old() == 1\ndef test_own():\n    with pytest.warns(Odd):\n        odd()\ndef test_record():\n    with warnings.catch_warnings(record=True) as seen:\n        warnings.simplefilter('always')\n        old()\n    assert len(seen) == 1\n",
    ),
    "stdout and stderr": (
        "import sys\ndef say(x):\n    print('out', x)\n    print('err', x, file=sys.stderr)\n",
        "from solution import say\ndef test_it(capsys):\n    say(1)\n    seen = capsys.readouterr()\n    assert seen.out == 'out 1\\n' and seen.err == 'err 1\\n'\n",
    ),
    "redirected": (
        "import sys\ndef say(x):\n    sys.stderr.write(x)\n",
        "import contextlib, io\n"
        + CASES
        + "    def test(self):\n        with contextlib.redirect_stderr(io.StringIO()) as err:\n            say('x')\n        self.assertEqual(err.getvalue(), 'x')\n",
    ),
    "stdin": (
        "import sys\ndef two():\n    return input(), sys.stdin.readline()\n",
        "import io\nfrom unittest.mock import patch\n"
        + CASES
        + "    @patch('sys.stdin', io.StringIO('a\\nb\\nc\\n'))\n    def test(self):\n        import sys\n        self.assertEqual(two(), ('a', 'b\\n'))\n        self.assertEqual(sys.stdin.read(), 'c\\n')\n",
    ),
    "input patched": (
        "def ask():\n    return int(input('n? ')) + int(input())\n",
        "from unittest.mock import patch\n"
        + CASES
        + "    @patch('builtins.input', side_effect=['1', '2'])\n    def test(self, asked):\n        self.assertEqual(ask(), 3)\n        self.assertEqual(asked.call_count, 2)\n",
    ),
    "time patched": (
        "import time\ndef age(then):\n    return time.time() - then\n",
        "from unittest.mock import patch\n"
        + CASES
        + "    def test(self):\n        with patch('time.time', return_value=100.0):\n            self.assertEqual(age(40), 60.0)\n    def test_through_it(self):\n        with patch('solution.time.time', return_value=50.0):\n            self.assertEqual(age(40), 10.0)\n        self.assertGreater(age(0), 1000)\n",
    ),
    "sleep patched": (
        "import time\ndef wait(n):\n    for _ in range(n): time.sleep(60)\n",
        "from solution import wait\ndef test_it(monkeypatch):\n    slept = []\n    monkeypatch.setattr('time.sleep', slept.append)\n    wait(2)\n    assert slept == [60, 60]\n",
    ),
    "its own function patched": (
        "def fetch(x):\n    raise OSError('no network')\ndef total(xs):\n    return sum(fetch(x) for x in xs)\n",
        "from unittest.mock import patch\n"
        + CASES
        + "    def test(self):\n        with patch('solution.fetch', side_effect=lambda x: x * 2) as fake:\n            self.assertEqual(total([1, 2]), 6)\n        self.assertEqual([c.args for c in fake.call_args_list], [(1,), (2,)])\n        with self.assertRaises(OSError):\n            total([1])\n",
    ),
    "a mock handed in": (
        "def notify(client, names):\n    for name in names: client.send(to=name)\n    return client.count()\n",
        "from unittest.mock import Mock\n"
        + CASES
        + "    def test(self):\n        client = Mock()\n        client.count.return_value = 7\n        self.assertEqual(notify(client, ['a', 'b']), 7)\n        client.send.assert_called_with(to='b')\n        self.assertEqual(client.send.call_count, 2)\n",
    ),
    "a class handed in": (
        "def build(kind, *args):\n    return kind(*args)\ndef are(xs, kind):\n    return [isinstance(x, kind) for x in xs]\n",
        CASES
        + "    def test(self):\n        class P:\n            def __init__(self, x): self.x = x\n        p = build(P, 3)\n        self.assertIsInstance(p, P)\n        self.assertEqual(p.x, 3)\n        self.assertEqual(are([1, 'a', p], P), [False, False, True])\n        self.assertEqual(build(int, '4'), 4)\n",
    ),
    "an object handed in": (
        "def area(shape):\n    shape.seen = True\n    return shape.width * shape.height() + len(shape)\n",
        CASES
        + "    def test(self):\n        class S:\n            width = 2\n            def height(self): return 3\n            def __len__(self): return 1\n        s = S()\n        self.assertEqual(area(s), 7)\n        self.assertTrue(s.seen)\n",
    ),
    "subclassed": (
        "class Shape:\n    def __init__(self, name): self.name = name\n    def area(self): raise NotImplementedError\n    def show(self): return f'{self.name}: {self.area()}'\n",
        CASES
        + "    def test(self):\n        class Square(Shape):\n            def area(self): return 4\n        self.assertEqual(Square('s').show(), 's: 4')\n        self.assertIsInstance(Square('s'), Shape)\n    def test_abstract(self):\n        with self.assertRaises(NotImplementedError):\n            Shape('x').show()\n",
    ),
    "dataclasses": (
        "from dataclasses import dataclass, field\n@dataclass(frozen=True)\nclass P:\n    x: int\n    ys: list = field(default_factory=list)\n",
        "import dataclasses\n"
        + CASES
        + "    def test(self):\n        p = P(1, [2])\n        self.assertEqual(dataclasses.asdict(p), {'x': 1, 'ys': [2]})\n        self.assertEqual(dataclasses.replace(p, x=5).x, 5)\n        self.assertEqual([f.name for f in dataclasses.fields(P)], ['x', 'ys'])\n        with self.assertRaises(dataclasses.FrozenInstanceError):\n            p.x = 2\n",
    ),
    "enums": (
        "from enum import Enum, auto\nclass C(Enum):\n    RED = auto()\n    BLUE = auto()\ndef other(c):\n    return C.BLUE if c is C.RED else C.RED\n",
        CASES
        + "    def test(self):\n        self.assertIs(other(C.RED), C.BLUE)\n        self.assertEqual([c.name for c in C], ['RED', 'BLUE'])\n        self.assertEqual(C['RED'], C(1))\n        self.assertEqual({C.RED: 1}[other(C.BLUE)], 1)\n",
    ),
    "identity": (
        "_one = object()\ndef get():\n    return _one\ndef keep(xs):\n    xs.append(1)\n    return xs\ndef inner(d):\n    return d['k']\n",
        CASES
        + "    def test(self):\n        self.assertIs(get(), get())\n        a = []\n        self.assertIs(keep(a), a)\n        self.assertEqual(a, [1])\n        d = {'k': [1]}\n        self.assertIs(inner(d), d['k'])\n",
    ),
    "copies": (
        "class Box:\n    def __init__(self): self.items = [[1]]\n",
        "import copy\n"
        + CASES
        + "    def test(self):\n        b = Box()\n        c = copy.deepcopy(b)\n        self.assertIsNot(b, c)\n        self.assertEqual(c.items, [[1]])\n",
    ),
    "seeds": (
        "import random\ndef shuffle(xs):\n    ys = list(xs)\n    random.shuffle(ys)\n    return ys\n",
        "import random\n"
        + CASES
        + "    def test(self):\n        random.seed(3)\n        a = shuffle(range(20))\n        random.seed(3)\n        self.assertEqual(shuffle(range(20)), a)\n        random.seed(3)\n        b = list(range(20))\n        random.shuffle(b)\n        self.assertEqual(a, b)\n",
    ),
    "files in a folder": (
        "import json, os\ndef save(path, x):\n    with open(path, 'w') as f: json.dump(x, f)\ndef load(path):\n    with open(path) as f: return json.load(f)\ndef names(folder):\n    os.makedirs(os.path.join(folder, 'new'), exist_ok=True)\n    return sorted(os.listdir(folder))\n",
        "import os, tempfile\n"
        + CASES
        + "    def test(self):\n        with tempfile.TemporaryDirectory() as d:\n            p = os.path.join(d, 'x.json')\n            save(p, [1])\n            self.assertEqual(load(p), [1])\n            self.assertEqual(names(d), ['new', 'x.json'])\n        self.assertFalse(os.path.exists(d))\n    def test_named(self):\n        with tempfile.NamedTemporaryFile('w+', suffix='.json') as f:\n            save(f.name, 3)\n            self.assertEqual(f.read(), '3')\n",
    ),
    "tmp_path": (
        "def write(path, text):\n    path.write_text(text)\n    return path.with_suffix('.bak')\ndef count(folder):\n    return len(list(folder.iterdir()))\n",
        "from solution import write, count\ndef test_it(tmp_path):\n    p = tmp_path / 'a.txt'\n    assert write(p, 'hi') == tmp_path / 'a.bak'\n    assert p.read_text() == 'hi'\n    (tmp_path / 'b').mkdir()\n    assert count(tmp_path) == 2\n",
    ),
    "in another folder": (
        "def lines():\n    with open('notes.txt') as f: return f.read().split()\n",
        "from solution import lines\ndef test_it(tmp_path, monkeypatch):\n    monkeypatch.chdir(tmp_path)\n    (tmp_path / 'notes.txt').write_text('a b')\n    assert lines() == ['a', 'b']\n",
    ),
    "environment": (
        "import os\ndef mode():\n    return os.environ.get('MODE', 'plain')\ndef set_mode(x):\n    os.environ['MODE'] = x\n",
        "import os\nfrom solution import mode, set_mode\ndef test_it(monkeypatch):\n    monkeypatch.setenv('MODE', 'fast')\n    assert mode() == 'fast'\n    monkeypatch.delenv('MODE')\n    assert mode() == 'plain'\n    set_mode('slow')\n    assert os.environ['MODE'] == 'slow'\n",
    ),
    "a stream handed in": (
        "def dump(out, rows):\n    for row in rows: out.write(','.join(map(str, row)) + '\\n')\ndef parse(source):\n    return [line.strip() for line in source]\n",
        "import io\n"
        + CASES
        + "    def test(self):\n        out = io.StringIO()\n        dump(out, [(1, 2), (3, 4)])\n        self.assertEqual(out.getvalue(), '1,2\\n3,4\\n')\n        self.assertEqual(parse(io.StringIO('a\\nb\\n')), ['a', 'b'])\n",
    ),
    "errors": (
        "import json\nclass Bad(ValueError):\n    def __init__(self, code):\n        super().__init__(f'code {code}')\n        self.code = code\ndef parse(s):\n    try:\n        return json.loads(s)\n    except json.JSONDecodeError as e:\n        raise Bad(3) from e\ndef raw(s):\n    return json.loads(s)\ndef missing():\n    open('/none/such')\n",
        "import json\n"
        + CASES
        + "    def test(self):\n        with self.assertRaisesRegex(Bad, 'code 3') as c:\n            parse('{')\n        self.assertEqual(c.exception.code, 3)\n        self.assertIsInstance(c.exception.__cause__, json.JSONDecodeError)\n        with self.assertRaises(json.JSONDecodeError) as c:\n            raw('{')\n        self.assertEqual(c.exception.pos, 1)\n        with self.assertRaises(FileNotFoundError) as c:\n            missing()\n        self.assertEqual(c.exception.errno, 2)\n",
    ),
    "context managers": (
        "class Quiet:\n    def __enter__(self): return self\n    def __exit__(self, kind, error, trace): return kind is KeyError\nfrom contextlib import contextmanager\n@contextmanager\ndef tag(out, name):\n    out.append('<' + name)\n    yield name\n    out.append(name + '>')\n",
        CASES
        + "    def test(self):\n        out = []\n        with tag(out, 'b') as name:\n            self.assertEqual(name, 'b')\n            out.append('x')\n        self.assertEqual(out, ['<b', 'x', 'b>'])\n    def test_swallows(self):\n        with Quiet():\n            raise KeyError('x')\n",
    ),
    "containers": (
        "class Bag:\n    def __init__(self): self.d = {}\n    def __setitem__(self, k, v): self.d[k] = v\n    def __getitem__(self, k): return self.d[k]\n    def __delitem__(self, k): del self.d[k]\n    def __len__(self): return len(self.d)\n    def __iter__(self): return iter(self.d)\n    def __contains__(self, k): return k in self.d\n    def __eq__(self, o): return isinstance(o, Bag) and self.d == o.d\n    def __hash__(self): return 1\n",
        CASES
        + "    def test(self):\n        b, c = Bag(), Bag()\n        b['x'] = 1\n        self.assertIn('x', b)\n        self.assertNotEqual(b, c)\n        c['x'] = 1\n        self.assertEqual(b, c)\n        del b['x']\n        self.assertEqual((len(b), list(c), c['x']), (0, ['x'], 1))\n        with self.assertRaises(KeyError):\n            b['x']\n",
    ),
    "properties and classes": (
        "class T:\n    count = 0\n    def __init__(self, c): self._c = c; T.count += 1\n    @property\n    def f(self): return self._c * 9 / 5 + 32\n    @f.setter\n    def f(self, v): self._c = (v - 32) * 5 / 9\n    @classmethod\n    def of(cls, s): return cls(float(s))\n    @staticmethod\n    def unit(): return 'C'\n",
        "from solution import T as Temp\nimport unittest\nclass Tests(unittest.TestCase):\n    def test(self):\n        t = Temp.of('100')\n        self.assertAlmostEqual(t.f, 212)\n        t.f = 32\n        self.assertAlmostEqual(t._c, 0)\n        self.assertEqual(Temp.unit(), 'C')\n        self.assertTrue(hasattr(t, 'f') and not hasattr(t, 'g'))\n        self.assertEqual(Temp.count, 1)\n",
    ),
    "functions handed in": (
        "def apply(f, xs, **more):\n    return [f(x, **more) for x in xs]\ndef memo(f):\n    seen = {}\n    def inner(x):\n        if x not in seen: seen[x] = f(x)\n        return seen[x]\n    return inner\ndef order(xs, key): return sorted(xs, key=key)\n",
        CASES
        + "    def test(self):\n        calls = []\n        g = memo(lambda x: calls.append(x) or x * 2)\n        self.assertEqual((g(2), g(2), calls), (4, 4, [2]))\n        self.assertEqual(apply(lambda x, k=1: x + k, [1, 2], k=5), [6, 7])\n        self.assertEqual(order(['bb', 'a'], len), ['a', 'bb'])\n        def bad(x): raise LookupError('no')\n        with self.assertRaises(LookupError):\n            apply(bad, [1])\n",
    ),
    "threads": (
        "import threading\nclass Counter:\n    def __init__(self): self.n, self.lock = 0, threading.Lock()\n    def add(self):\n        with self.lock: self.n += 1\ndef race(k):\n    c = Counter()\n    ts = [threading.Thread(target=c.add) for _ in range(k)]\n    [t.start() for t in ts]; [t.join() for t in ts]\n    return c.n\n",
        CASES + "    def test(self):\n        self.assertEqual(race(5), 5)\n",
    ),
    "super": (
        "class A:\n    def __init__(self, x): self.x = x\n",
        CASES
        + "    def test(self):\n        class B(A):\n            def __init__(self): super().__init__(4)\n        self.assertEqual(B().x, 4)\n",
    ),
    "pickles": (
        "class P:\n    def __init__(self, x): self.x = x\n",
        "import pickle\n"
        + CASES
        + "    def test(self):\n        self.assertEqual(pickle.loads(pickle.dumps(P(3))).x, 3)\n",
    ),
    "weak references": (
        "class N: pass\n",
        "import gc, weakref\n"
        + CASES
        + "    def test(self):\n        n = N()\n        r = weakref.ref(n)\n        del n\n        gc.collect()\n        self.assertIsNone(r())\n",
    ),
    "a fixture that yields": (
        "class Q:\n    def __init__(s): s.items=[]\n    def put(s,x): s.items.append(x)\n    def __len__(s): return len(s.items)\n",
        "import pytest\nimport solution\nfrom solution import *\n@pytest.fixture\ndef q():\n    q=Q(); q.put(1)\n    yield q\n    assert len(q)==2\ndef test_a(q):\n    q.put(2)\n    assert len(q)==2 and q.items==[1,2]\n",
    ),
    "a fixture with parameters": (
        "def sq(x): return x*x\n",
        "import pytest\nimport solution\nfrom solution import *\n@pytest.fixture(params=[1,2,3], scope='module')\ndef n(request): return request.param\ndef test_a(n): assert sq(n)==n**2\n",
    ),
    "approximately": (
        "def f(): return [0.1+0.2, 1.0]\ndef g(): return {'a': 0.1+0.2}\n",
        "import pytest\nimport solution\nfrom solution import *\ndef test_a():\n    assert f()==pytest.approx([0.3,1.0])\n    assert g()==pytest.approx({'a':0.3})\n",
    ),
    "subtests and clean-up": (
        "def f(x): return x+1\n",
        CASES
        + "    @classmethod\n    def setUpClass(cls): cls.base=1\n    def setUp(self): self.addCleanup(lambda: None)\n    def test_a(self):\n        for i in range(3):\n            with self.subTest(i=i): self.assertEqual(f(i), i+self.base)\n",
    ),
    "operators": (
        "class V:\n    def __init__(s,x,y): s.x,s.y=x,y\n    def __add__(s,o): return V(s.x+o.x,s.y+o.y)\n    def __mul__(s,k): return V(s.x*k,s.y*k)\n    __rmul__=__mul__\n    def __neg__(s): return V(-s.x,-s.y)\n    def __eq__(s,o): return isinstance(o,V) and (s.x,s.y)==(o.x,o.y)\n    def __hash__(s): return hash((s.x,s.y))\n    def __repr__(s): return f'V({s.x}, {s.y})'\n    def __abs__(s): return (s.x**2+s.y**2)**.5\n    def __iter__(s): return iter((s.x,s.y))\n    def __getitem__(s,i): return (s.x,s.y)[i]\n    def __bool__(s): return bool(s.x or s.y)\n    def __lt__(s,o): return abs(s)<abs(o)\n",
        CASES
        + "    def test_a(self):\n        self.assertEqual(V(1,2)+V(3,4),V(4,6))\n        self.assertEqual(2*V(1,2),V(2,4)); self.assertEqual(V(1,2)*3,V(3,6))\n        self.assertEqual(-V(1,2),V(-1,-2)); self.assertEqual(repr(V(1,2)),'V(1, 2)')\n        self.assertEqual(abs(V(3,4)),5.0); self.assertEqual(tuple(V(1,2)),(1,2)); self.assertEqual(V(1,2)[0],1)\n        self.assertFalse(V(0,0)); self.assertTrue(V(1,0)<V(2,0)); self.assertEqual(len({V(1,2),V(1,2)}),1)\n        self.assertEqual(sorted([V(3,0),V(1,0)]),[V(1,0),V(3,0)]); self.assertIn(V(1,2),[V(1,2)])\n        x,y=V(5,6); self.assertEqual((x,y),(5,6)); a=V(1,1); a+=V(1,1); self.assertEqual(a,V(2,2))\n",
    ),
    "decorators": (
        "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def w(*a,**k):\n        f(*a,**k); return f(*a,**k)\n    return w\ndef retry(n):\n    def deco(f):\n        @functools.wraps(f)\n        def w(*a):\n            for i in range(n):\n                try: return f(*a)\n                except ValueError:\n                    if i==n-1: raise\n        return w\n    return deco\n",
        CASES
        + "    def test_a(self):\n        calls=[]\n        @twice\n        def g(x): calls.append(x); return x\n        self.assertEqual(g(3),3); self.assertEqual(calls,[3,3]); self.assertEqual(g.__name__,'g')\n    def test_b(self):\n        n=0\n        @retry(3)\n        def h():\n            nonlocal n; n+=1\n            if n<3: raise ValueError('x')\n            return n\n        self.assertEqual(h(),3)\n    def test_c(self):\n        @retry(2)\n        def h(): raise ValueError('always')\n        with self.assertRaisesRegex(ValueError,'always'): h()\n",
    ),
    "a generator, closed and thrown into": (
        "def g():\n    try:\n        while True:\n            try: yield 1\n            except KeyError: yield 2\n    finally: log.append('end')\nlog=[]\n",
        CASES
        + "    def test_a(self):\n        it=g(); self.assertEqual(next(it),1); self.assertEqual(it.throw(KeyError),2); it.close(); self.assertEqual(solution.log,['end'])\n",
    ),
    "dates, decimals, paths": (
        "import datetime as d\nfrom decimal import Decimal\nfrom pathlib import Path\nfrom fractions import Fraction\nimport uuid\ndef day(): return d.date(2020,1,2)\ndef delta(): return d.timedelta(days=1)\ndef dec(): return Decimal('1.10')\ndef path(): return Path('a')/'b'\ndef fr(): return Fraction(1,2)\ndef now(x): return x+d.timedelta(hours=1)\n",
        "import datetime\nfrom decimal import Decimal\nfrom pathlib import Path\nfrom fractions import Fraction\n"
        + CASES
        + "    def test_a(self):\n        self.assertEqual(day(),datetime.date(2020,1,2)); self.assertEqual(delta().days,1); self.assertEqual(dec(),Decimal('1.10')); self.assertEqual(path(),Path('a/b')); self.assertEqual(fr(),Fraction(1,2))\n        self.assertEqual(now(datetime.datetime(2020,1,1)),datetime.datetime(2020,1,1,1)); self.assertIsInstance(day(),datetime.date); self.assertLess(day(),datetime.date(2021,1,1))\n",
    ),
    "types of results": (
        "def a(): return [1]\ndef b(): return {'x':(1,2)}\ndef c(): return {1,2}\ndef d(): return 'x'\ndef e(): return None\ndef s(): return bytearray(b'ab')\n",
        "import json\n"
        + CASES
        + "    def test_a(self):\n        self.assertIsInstance(a(),list); self.assertIs(type(b()),dict); self.assertEqual(json.dumps(b()),'{\"x\": [1, 2]}'); self.assertIsInstance(c(),set); self.assertIsNone(e()); self.assertEqual(s(),b'ab'); self.assertIsInstance(s(),bytearray)\n",
    ),
    "abstract classes": (
        "from abc import ABC, abstractmethod\nclass Shape(ABC):\n    @abstractmethod\n    def area(self): ...\nclass Sq(Shape):\n    def __init__(s,a): s.a=a\n    def area(s): return s.a**2\n",
        CASES
        + "    def test_a(self):\n        with self.assertRaises(TypeError): Shape()\n        self.assertEqual(Sq(2).area(),4); self.assertIsInstance(Sq(1),Shape); self.assertTrue(issubclass(Sq,Shape))\n",
    ),
    "errors, in pytest's forms": (
        "class MyErr(Exception):\n    def __init__(s,m,code=1): super().__init__(m); s.code=code\ndef f(x):\n    if x<0: raise MyErr('neg', code=7)\n    if x==0: raise ZeroDivisionError('z')\n    return x\n",
        "import pytest\nimport solution\nfrom solution import *\nimport re\ndef test_a():\n    with pytest.raises(MyErr, match=r'^neg$') as e: f(-1)\n    assert e.value.code==7 and e.type is MyErr and str(e.value)=='neg'\n    with pytest.raises((ZeroDivisionError, KeyError)): f(0)\n    pytest.raises(MyErr, f, -1)\n    assert issubclass(MyErr, Exception)\n",
    ),
    "callbacks": (
        "class Bus:\n    def __init__(s): s.h={}\n    def on(s,n,f): s.h.setdefault(n,[]).append(f)\n    def emit(s,n,*a,**k): return [f(*a,**k) for f in s.h.get(n,[])]\n",
        CASES
        + "    def test_a(self):\n        b=Bus(); seen=[]\n        b.on('x',seen.append); b.on('x',lambda v: v*2); m=(lambda v: 3); b.on('x',m)\n        self.assertEqual(b.emit('x',5),[None,10,3]); self.assertEqual(seen,[5])\n",
    ),
    "annotations": (
        "from typing import get_type_hints\ndef f(a: int, b: str='x') -> bool: return True\n",
        "import typing, inspect\n"
        + CASES
        + "    def test_a(self):\n        self.assertEqual(typing.get_type_hints(f), {'a':int,'b':str,'return':bool}); self.assertEqual(f.__annotations__['a'], int); self.assertEqual(inspect.signature(f).parameters['b'].default,'x'); self.assertIn('def f', inspect.getsource(f)); self.assertEqual(f.__defaults__,('x',))\n",
    ),
    "iterators": (
        "class It:\n    def __init__(s,n): s.n=n\n    def __iter__(s): s.i=0; return s\n    def __next__(s):\n        if s.i>=s.n: raise StopIteration\n        s.i+=1; return s.i\ndef chunks(xs,n):\n    for i in range(0,len(xs),n): yield xs[i:i+n]\n",
        "import itertools\n"
        + CASES
        + "    def test_a(self):\n        self.assertEqual(list(It(3)),[1,2,3]); self.assertEqual(sum(It(3)),6); self.assertEqual(max(It(3)),3); self.assertEqual(list(zip(It(2),'ab')),[(1,'a'),(2,'b')]); self.assertEqual(list(itertools.islice(It(9),2)),[1,2])\n        self.assertEqual(list(chunks([1,2,3],2)),[[1,2],[3]]); self.assertEqual([*chunks('abc',1)],['a','b','c']); self.assertIn(2,It(3))\n",
    ),
    "an order of its own": (
        "from dataclasses import dataclass\n@dataclass(order=True)\nclass E:\n    p:int\n    n:str=''\ndef top(es): return max(es,key=lambda e:e.p)\n",
        CASES
        + "    def test_a(self):\n        es=[E(1,'a'),E(3,'b')]\n        self.assertEqual(top(es).n,'b'); self.assertEqual([e.n for e in sorted(es,reverse=True)],['b','a']); self.assertEqual(top(es),E(3,'b')); self.assertIs(top(es),es[1])\n",
    ),
    "equal to plain data": (
        "class Money:\n    def __init__(s,c): s.c=c\n    def __eq__(s,o): return s.c==(o.c if isinstance(o,Money) else o)\n    def __str__(s): return f'{s.c/100:.2f}'\n    def __format__(s,f): return str(s)\n",
        CASES
        + "    def test_a(self):\n        self.assertEqual(Money(5),5)\n        self.assertEqual(f'{Money(150)}','1.50')\n",
    ),
}
