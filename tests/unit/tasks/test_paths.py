"""Folders, globs, and folders that Hugging Face's `datasets` saved (those in the cases: datasets 5.2.0)."""

import json
import shutil
from pathlib import Path

import fsspec
import pytest

from tasks.errors import UnreadableData
from tasks.files.checked import CheckedPrompts
from tasks.files.mapping import ColumnMap
from tasks.files.paths import files_of

SAVED = Path(__file__).parents[2] / "cases" / "outside" / "datasets"
QA = ColumnMap({"messages": "question", "answer": "answer"}, "math")
CHATS = ColumnMap({"answer": "messages"}, "math")


def asked(path: Path, columns: ColumnMap = QA) -> tuple[list[str], list[str]]:
    """The last message of each prompt, and the refusals."""
    with CheckedPrompts(str(path), columns=columns) as checked:
        checked.read()
        refusals = [str(refusal).removeprefix(f"{path}/") for refusal in checked.refusals]
        return [prompt.messages[-1].content for prompt in checked.prompts()], refusals


def write(path: Path, *numbers: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"question": f"{n}?", "answer": n}) + "\n" for n in numbers))
    return path


def names(path: str) -> list[str]:
    return [Path(file).name for file in files_of(path)]


def test_a_folder_is_its_files_of_data_by_name(tmp_path: Path) -> None:
    for name, number in (("b.jsonl", 2), ("a.jsonl", 1), ("c.ndjson", 3)):
        write(tmp_path / name, number)
    for name in ("README.md", ".hidden.jsonl", "_SUCCESS", "dataset_infos.json", "sub/d.jsonl"):
        write(tmp_path / name, 9)
    assert asked(tmp_path) == (["1?", "2?", "3?"], [])


def test_a_refusal_names_the_file_of_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", 1, 2)
    (tmp_path / "b.jsonl").write_text('{"question": "3?", "answer": 3}\n{"question": "4?"}\n')
    _, (refusal,) = asked(tmp_path)
    assert refusal.startswith("b.jsonl:2: there is no column `answer`")


def test_training_and_test_files_of_a_folder_are_not_mixed(tmp_path: Path) -> None:
    for name in ("train-00000-of-00002.jsonl", "train-00001-of-00002.jsonl", "test-00000-of-00001.jsonl"):
        write(tmp_path / name, 1)
    with pytest.raises(UnreadableData, match=r"has files of test and train: give one, .*/\*train\*"):
        files_of(str(tmp_path))
    assert names(f"{tmp_path}/train*") == ["train-00000-of-00002.jsonl", "train-00001-of-00002.jsonl"]
    (tmp_path / "test-00000-of-00001.jsonl").rename(tmp_path / "gsm8k_test.jsonl.gz")
    with pytest.raises(UnreadableData, match="has files of test and train"):
        files_of(str(tmp_path))
    (tmp_path / "gsm8k_test.jsonl.gz").rename(tmp_path / "training-contest.jsonl")
    assert len(files_of(str(tmp_path))) == 3


@pytest.mark.parametrize("folder", ["plain", "a b é日本+%#&=@:;[x] *?"])
def test_globs(tmp_path: Path, folder: str) -> None:
    tmp_path = tmp_path / folder
    write(tmp_path / "a" / "1.jsonl", 1)
    write(tmp_path / "b" / "2.jsonl", 2)
    write(tmp_path / "[3].jsonl", 3)
    assert names(f"{tmp_path}/*/?.jsonl") == ["1.jsonl", "2.jsonl"]
    assert names(f"{tmp_path}/**/[1-2].jsonl") == ["1.jsonl", "2.jsonl"]
    assert names(f"{tmp_path}/[3].jsonl") == ["[3].jsonl"]  # a file of that name goes before what it might mean
    with pytest.raises(UnreadableData, match="no file is named so"):
        files_of(f"{tmp_path}/*.parquet")


def test_folders_and_globs_of_a_url() -> None:
    system = fsspec.filesystem("memory")
    for name in ("b.jsonl", "a.jsonl", "README.md"):
        system.pipe(f"/headwater-test/{name}", b'{"question": "?", "answer": 4}\n')
    try:
        assert names("memory://headwater-test/") == ["a.jsonl", "b.jsonl"]
        assert names("memory://headwater-test/b*.jsonl") == ["b.jsonl"]
        with CheckedPrompts("memory://headwater-test/", columns=QA) as checked:
            checked.read()
            assert checked.accepted == 2
        with pytest.raises(UnreadableData, match="absent"):
            files_of("memory://absent/")
    finally:
        system.rm("/headwater-test", recursive=True)


def test_folders_without_data(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(UnreadableData, match=r"no file of \.jsonl, .* in it; its folders: data"):
        files_of(str(tmp_path))
    write(tmp_path / "a.jsonl", 1)
    (tmp_path / "b.jsonl").touch()
    with pytest.raises(UnreadableData, match=r"b\.jsonl: no prompt in it: the file is empty"):
        asked(tmp_path)


def test_what_datasets_saved() -> None:
    # Dataset.shuffle(seed=3).select(range(3)): these three, in this order, as datasets says itself
    assert asked(SAVED / "selection") == (["2 + 2?", "5 + 5?", "4 + 4?"], [])
    assert asked(SAVED / "splits" / "test") == (["4 + 4?", "5 + 5?"], [])
    assert asked(SAVED / "chats", CHATS) == (["2+2", "2+3"], [])
    with pytest.raises(UnreadableData, match=r"has the splits train, test: give one of them, .*splits/train"):
        files_of(str(SAVED / "splits"))


def test_what_datasets_puts_beside_its_data_is_none(tmp_path: Path) -> None:
    shutil.copytree(SAVED / "selection", tmp_path / "saved")
    shutil.copy(SAVED / "splits" / "train" / "data-00000-of-00001.arrow", tmp_path / "saved" / "cache-2d0a802b.arrow")
    assert len(asked(tmp_path / "saved")[0]) == 3


def test_a_saved_folder_that_is_not_whole(tmp_path: Path) -> None:
    shutil.copytree(SAVED / "selection", tmp_path / "saved")
    state = tmp_path / "saved" / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "_indices_data_files": [{"filename": "i.arrow"}]}))
    with pytest.raises(UnreadableData, match="flatten_indices"):
        files_of(str(tmp_path / "saved"))
    state.write_text('{"_data_files": [{"filename": "absent.arrow"}]}')
    with pytest.raises(UnreadableData, match=r"absent\.arrow: no such file"):
        asked(tmp_path / "saved")
    state.write_text("{}")
    with pytest.raises(UnreadableData, match="none of Hugging Face's"):
        files_of(str(tmp_path / "saved"))


def test_an_arrow_stream_that_is_cut_says_so_wherever_it_is_cut(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table({"question": [f"{n}?" for n in range(9)], "answer": list(range(9))})
    with pa.ipc.new_stream(tmp_path / "whole.arrow", table.schema) as stream:
        stream.write_table(table, max_chunksize=3)
    whole = (tmp_path / "whole.arrow").read_bytes()
    assert len(asked(tmp_path / "whole.arrow")[0]) == 9
    short = 0
    for end in range(len(whole) // 2, len(whole), 7):
        (tmp_path / "cut.arrow").write_bytes(whole[:end])
        accepted, (refusal,) = asked(tmp_path / "cut.arrow")
        assert "breaks off" in refusal
        assert accepted == [f"{n}?" for n in range(len(accepted))]
        short += len(accepted) < 9
    assert short
    with pa.ipc.new_file(tmp_path / "file.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=3)
    assert len(asked(tmp_path / "file.arrow")[0]) == 9
